// Runs the provider of the npm package oidc-provider, whose main file is the first argument. Prints its address as a
// line of JSON. The pages for development let every user log in with any password.

import { createServer } from 'node:http';
import { randomBytes } from 'node:crypto';

const [, , main, redirectUri, afterLogout] = process.argv;
const { Provider } = await import(main);

const random = () => randomBytes(24).toString('base64url');
const client = {
  client_id: 'rocknet',
  client_secret: random(),
  redirect_uris: [redirectUri],
  post_logout_redirect_uris: [afterLogout],
};
const account = (id) => ({
  accountId: id,
  claims: async () => ({
    sub: `id-of-${id}`,
    preferred_username: id,
    name: `${id} Ä`,
    email: `${id}@a.test`,
    email_verified: true,
    groups: id === 'ann' ? ['staff', 'b'] : ['guests'],
  }),
});

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [client],
    claims: {
      openid: ['sub'],
      profile: ['name', 'preferred_username'],
      email: ['email', 'email_verified'],
      groups: ['groups'],
    },
    cookies: { keys: [random()] },
    features: { devInteractions: { enabled: true } },
    findAccount: async (context, id) => account(id),
    pkce: { required: () => true },
  });
  server.on('request', provider.callback());
  const { client_id, client_secret } = client;
  console.log(JSON.stringify({ issuer, client_id, client_secret }));
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
