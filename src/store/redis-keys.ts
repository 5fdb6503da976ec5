/** Names of what an account has at the server; the same prefix for all, so that a cluster keeps them together. */
export interface RedisKeys {
  readonly inbox: string;
  readonly unreadable: string;
  readonly epoch: string;
  seen(key: string): string;
  alive(consumer: string): string;
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
  };
}
