/**
 * @typedef {object} Bubble
 * @property {string} key
 * @property {number} at epoch milliseconds
 * @property {boolean} isFromHandset
 * @property {string} body
 * @property {string} [sender] who sent it to the handset
 * @property {string} [statusCode] of a text to the handset
 * @property {string} [remark] what else there is to say about its status
 * @property {boolean} [isRefused] it was never sent
 * @property {boolean} [isReply] of a text from the handset
 *
 * @typedef {object} Conversation
 * @property {string} msisdn
 * @property {string} [name]
 * @property {Bubble[]} bubbles oldest first
 * @property {boolean} canReply whether a text was sent to the handset
 * @property {number} lastAt when something happened last; 0 for never
 */

const msisdnPattern = /^[1-9]\d{6,14}$/;
const keptBubbles = 200;

/**
 * The conversation of every handset: those named, those of the address book, and whoever wrote or was written to.
 * @param {import('./state.mjs').State} state
 * @param {Iterable<string>} named numbers
 * @returns {Map<string, Conversation>} by number, in the order in which they came up
 */
export function gatherConversations(state, named) {
  /** @type {Map<string, Conversation>} */
  const conversations = new Map();
  /** @param {string} msisdn @param {string} [name] */
  const of = (msisdn, name) => {
    let conversation = conversations.get(msisdn);
    if (!conversation) {
      conversation = { msisdn, bubbles: [], canReply: false, lastAt: 0 };
      conversations.set(msisdn, conversation);
    }
    if (name) conversation.name = name;
    return conversation;
  };
  for (const msisdn of named) of(msisdn);
  for (const [name, msisdn] of Object.entries(state.settings?.account.contacts ?? {})) of(msisdn, name);
  for (const [key, message] of state.messages) {
    for (const recipient of message.recipients) {
      if (!msisdnPattern.test(recipient.msisdn)) continue;
      const conversation = of(recipient.msisdn, recipient.name);
      if (!recipient.isError) conversation.canReply = true;
      conversation.bubbles.push(describeSent(key, message, recipient, state.settings?.account.defaultSender));
    }
  }
  for (const [key, message] of state.incoming) {
    of(message.from, message.displayName).bubbles.push({
      key: `in-${key}`,
      at: Date.parse(message.messageDate),
      isFromHandset: true,
      body: message.body,
      isReply: message.inReplyToId !== undefined,
    });
  }
  for (const conversation of conversations.values()) {
    conversation.bubbles.sort((one, other) => one.at - other.at);
    conversation.bubbles.splice(0, conversation.bubbles.length - keptBubbles);
    conversation.lastAt = conversation.bubbles.at(-1)?.at ?? 0;
  }
  return conversations;
}

/**
 * @param {number} key
 * @param {import('./state.mjs').OutboundMessage} message
 * @param {import('./state.mjs').OutboundMessage['recipients'][number]} recipient
 * @param {string | undefined} defaultSender
 * @returns {Bubble}
 */
function describeSent(key, message, recipient, defaultSender) {
  const remark = recipient.isError ? recipient.errorMessage : undefined;
  const sender = message.from ?? defaultSender;
  return {
    key: `out-${key}-${recipient.msisdn}`,
    at: Date.parse(message.messageDate),
    isFromHandset: false,
    body: message.deliveredBody ?? message.body,
    statusCode: recipient.statusCode,
    ...(sender !== undefined && { sender }),
    ...(remark !== undefined && { remark }),
    ...(recipient.isError && { isRefused: true }),
  };
}
