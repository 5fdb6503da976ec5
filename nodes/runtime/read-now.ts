import type { NodeAPI } from 'node-red';
import { json } from './account-admin';

/** Serves the admin route by which the button of a node triggers a read, like the button of the core node *inject*. */
export function serveReadNow(RED: NodeAPI, type: 'sms-outbox' | 'sms-feed'): void {
  const mayWrite = RED.auth.needsPermission(`${type}.write`);
  RED.httpAdmin.post(`/${type}/:id/read`, mayWrite, json, (request, response) => {
    const node = RED.nodes.getNode(String(request.params.id));
    if (node?.type !== type) {
      response.sendStatus(404);
      return;
    }
    node.receive({});
    response.sendStatus(200);
  });
}
