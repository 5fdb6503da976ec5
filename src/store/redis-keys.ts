/** Names of what an account has at the server; the same prefix for all, so that a cluster keeps them together. */
export interface RedisKeys {
  readonly inbox: string;
  readonly unreadable: string;
  readonly epoch: string;
  seen(key: string): string;
  alive(consumer: string): string;
  /** There since an instance is gone that has left something which nobody has taken over. */
  gone(consumer: string): string;
  /** There for as long as that is left to those who want it. */
  reserved(consumer: string): string;
}

/** Names what the account of a login has at the server. */
export function createKeys(login: string): RedisKeys {
  const name = (text: string) => `sms:{${login}}:${text}`;
  return {
    inbox: name('inbox'),
    unreadable: name('unreadable'),
    epoch: name('epoch'),
    seen: (key) => name(`seen:${key}`),
    alive: (consumer) => name(`alive:${consumer}`),
    gone: (consumer) => name(`gone:${consumer}`),
    reserved: (consumer) => name(`reserved:${consumer}`),
  };
}
