// Settings of Node-RED in a container. Secrets come from the environment.
const { PORT = '1880', CREDENTIAL_SECRET, ADMIN_PASSWORD_HASH } = process.env;

if (!CREDENTIAL_SECRET || !ADMIN_PASSWORD_HASH) throw new Error('Set CREDENTIAL_SECRET and ADMIN_PASSWORD_HASH.');

module.exports = {
  uiPort: Number(PORT),
  flowFile: 'flows.json',
  // Encrypts API keys, passwords and tokens in flows_cred.json. Without it, Node-RED makes one up, which a new container does not know.
  credentialSecret: CREDENTIAL_SECRET,
  // The editor has its own path, so a proxy can forward callbacks and block the editor.
  httpAdminRoot: '/admin',
  adminAuth: {
    type: 'credentials',
    users: [{ username: 'admin', password: ADMIN_PASSWORD_HASH, permissions: '*' }],
  },
};
