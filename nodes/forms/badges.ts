import { translateBadge } from '../badge-words';
import { text } from './shared';

/**
 * Translates the badges of this package when they arrive. Node-RED itself can translate only words without parameters
 * from the catalog of the node's own type.
 */
export function translateBadges(): void {
  RED.comms.subscribe('status/#', (topic, status) => {
    const node = RED.nodes.node(topic.slice('status/'.length));
    if (!node?.type.startsWith('sms-') || typeof status?.text !== 'string') return;
    // The editor draws this same object, either before or after this listener runs.
    status.text = translateBadge(status.text, (key, params) => text(`sms-account.${key}`, params));
    RED.view.redrawStatus(node);
  });
}
