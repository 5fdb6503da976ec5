export const parts: string[];
export const secondGeneration: string[];
export function listTestFiles(root: string): string[];
export function isIn(file: string, name: string): boolean;
export function isOnEveryGeneration(file: string): boolean;
export function isOnSecondGeneration(file: string): boolean;
export function isSelfContained(file: string): boolean;
export function planProcesses(
  files: string[],
  secondsOf: Record<string, number>,
): { name: string; files: string[]; seconds: number }[];
