import type { NodeAPI } from 'node-red';

/** A node as it is deployed, be it started or not. */
export type DeployedNode = Parameters<Parameters<NodeAPI['nodes']['eachNode']>[0]>[0];

/** The first that is meant. */
export function findNode(RED: NodeAPI, isMeant: (node: DeployedNode) => boolean): DeployedNode | undefined {
  let found: DeployedNode | undefined;
  RED.nodes.eachNode((node) => {
    if (!found && isMeant(node)) found = node;
  });
  return found;
}
