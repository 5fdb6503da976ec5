import type { Completion, TypedInputType } from './editor';

/** Properties of `msg.sms`, by the types of the nodes that set them. */
const properties: Readonly<Record<string, readonly string[]>> = {
  'sms-in, sms-status': [
    'from',
    'to',
    'messageId',
    'inReplyToId',
    'sent.to',
    'sent.body',
    'sent.messageId',
    'sent.remembered',
  ],
  'sms-in': ['body', 'displayName', 'messageDate', 'isReply', 'optOut'],
  'sms-status': ['statusCode', 'description', 'error', 'statusDate', 'final'],
  'sms-send': ['accepted', 'failed', 'errorCode', 'errorMessage', 'parts', 'delivered', 'undelivered', 'pending'],
  'sms-ask': ['answer', 'body', 'reason', 'msisdn', 'reply', 'statusCode', 'errorCode', 'errorMessage'],
  'sms-outbox': ['recipients', 'recipientCount'],
  'sms-feed': ['account.balance', 'account.currency'],
  'sms-callback-in': ['query'],
};

const completions = Object.entries(properties).flatMap(([source, names]) =>
  names.map((name) => ({ value: `sms.${name}`, source })),
);

/** Returns Node-RED's own TypedInput type `msg`, with completions for the properties of `msg.sms`. */
export function createMsgType(): TypedInputType {
  const probe = $('<input type="text">')
    .appendTo($('<div>'))
    .typedInput({ default: 'msg', types: ['msg'] });
  const { msg } = probe.typedInput('instance').typeMap;
  return {
    ...msg,
    autoComplete: (written) => [...completionsFor(written), ...(msg.autoComplete?.(written) ?? [])],
  };
}

function completionsFor(written: string): Completion[] {
  const sought = written.trim().toLowerCase();
  return completions
    .filter(({ value }) => value.toLowerCase().includes(sought))
    .map(({ value, source }) => {
      const label = $('<div>').css('display', 'flex');
      $('<div>').addClass('red-ui-autoComplete-completion').text(value).appendTo(label);
      $('<div>').css('font-size', '0.8em').text(source).appendTo(label);
      return { value, label };
    });
}
