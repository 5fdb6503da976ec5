// Settings of a Node-RED in a container. What is secret comes from the environment.
const { PORT = '1880', CREDENTIAL_SECRET, ADMIN_PASSWORD_HASH } = process.env;

if (!CREDENTIAL_SECRET || !ADMIN_PASSWORD_HASH) throw new Error('Set CREDENTIAL_SECRET and ADMIN_PASSWORD_HASH.');

module.exports = {
  uiPort: Number(PORT),
  flowFile: 'flows.json',
  // Encrypts API keys, passwords and tokens in flows_cred.json. Without it, a lost settings file loses them.
  credentialSecret: CREDENTIAL_SECRET,
  // The editor has a path of its own, so that a proxy can let callbacks in and keep the editor out.
  httpAdminRoot: '/admin',
  adminAuth: {
    type: 'credentials',
    users: [{ username: 'admin', password: ADMIN_PASSWORD_HASH, permissions: '*' }],
  },
};
