import { translateBadge } from '../badge-words';
import { text } from './shared';

/**
 * Translates the badges of this package when they arrive. Node-RED itself can translate only badges that have no
 * parameters and whose words are in the catalog of the node's own type.
 */
export function translateBadges(): void {
  RED.comms.subscribe('status/#', (topic, status) => {
    const node = RED.nodes.node(topic.slice('status/'.length));
    if (!node?.type.startsWith('sms-') || typeof status?.text !== 'string') return;
    // Changes the status object of the editor and redraws the badge, because the editor might already have drawn the
    // badge in English.
    status.text = translateBadge(status.text, (key, params) => text(`sms-account.${key}`, params));
    RED.view.redrawStatus(node);
  });
}
