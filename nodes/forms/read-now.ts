import type { EditorNode } from './editor';
import { postJson, text } from './shared';

/** The button beside a node. It triggers a read, like the button of the core node *inject*. */
export const readNowButton = {
  enabled(this: EditorNode): boolean {
    return !this.changed;
  },
  onclick(this: EditorNode): void {
    if (this.changed) {
      const message = RED._('notification.warnings.undeployedChanges');
      RED.notify(RED._('notification.warning', { message }), 'warning');
      return;
    }
    postJson(`${this.type}/${encodeURIComponent(this.id)}/read`, '{}')
      .done(() => RED.notify(text('sms-account.readNow.done'), { type: 'success', timeout: 2_000 }))
      .fail(({ status }) => {
        const key = status === 401 || status === 403 ? 'denied' : status === 404 ? 'notDeployed' : 'failed';
        RED.notify(text(`sms-account.readNow.${key}`, { permission: `${this.type}.write` }), 'error');
      });
  },
};
