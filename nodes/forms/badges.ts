import { translateBadge } from '../badge-words';
import { text } from './shared';

/**
 * Translates the badges of this package as they arrive. Node-RED itself can translate only words without parameters,
 * and those in the catalog of the node's own type.
 */
export function translateBadges(): void {
  RED.comms.subscribe('status/#', (topic, status) => {
    const node = RED.nodes.node(topic.slice('status/'.length));
    if (!node?.type.startsWith('sms-') || typeof status?.text !== 'string') return;
    // The editor draws this same object, before or after this.
    status.text = translateBadge(status.text, (key, params) => text(`sms-account.${key}`, params));
    RED.view.redrawStatus(node);
  });
}
