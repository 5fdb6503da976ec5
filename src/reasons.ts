/**
 * Every error by its reason: the code it carries and its English text. The text says what happened and what to do.
 * `{{name}}` stands for a parameter. Translations live in the nodes' catalogs under the same reasons.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { reasons } from '@messaging-service/node-red-sms';
 *
 * const [code, text] = reasons.bodyEmpty;
 * assert.equal(code, 'SMS_INPUT');
 * console.log(text);
 * ```
 */
export const reasons = {
  noAccount: ['SMS_CONFIG', 'No account is chosen. Open the node and choose an SMS account.'],
  accountMissing: [
    'SMS_CONFIG',
    'The account of the node does not exist, is disabled or is not deployed yet. Choose another one, or deploy it.',
  ],
  baseUrlMissing: ['SMS_CONFIG', 'The account has no base URL. Enter the address of the service in the account.'],
  baseUrlInvalid: [
    'SMS_CONFIG',
    'The base URL of the account is not usable. Enter an address such as https://sms.example.com, without user name, query or fragment.',
  ],
  baseUrlHttp: [
    'SMS_CONFIG',
    'The base URL of the account is plain http, which would send the credentials unprotected. Use https, or allow http in the account.',
  ],
  settingNumber: ['SMS_CONFIG', 'The setting "{{setting}}" is not usable. Give a number from {{min}} to {{max}}.'],
  settingWhole: ['SMS_CONFIG', 'The setting "{{setting}}" is not usable. Give a whole number from {{min}} to {{max}}.'],
  variableMissing: [
    'SMS_CONFIG',
    'The environment variable {{variable}} is not set, or is blank. Set it for Node-RED, or enter the value itself.',
  ],
  variableOfSubflow: [
    'SMS_CONFIG',
    'The variable {{variable}} belongs to the subflow, which gives it no value of its own. Give it one in the properties of the subflow, or enter the value itself.',
  ],
  settingText: ['SMS_CONFIG', 'The setting "{{setting}}" is not text. Give text, or a variable that holds text.'],
  settingChoice: ['SMS_CONFIG', 'The setting "{{setting}}" is not usable. Give one of these values: {{choices}}.'],
  prefixInvalid: [
    'SMS_CONFIG',
    'The prefixes of the account are not all beginnings of numbers. Give digits alone, such as 64 61, or leave them blank.',
  ],
  timeOfDay: [
    'SMS_CONFIG',
    'The setting "{{setting}}" is not a time of day. Give one such as 21:30, or leave it blank.',
  ],
  quietHalf: [
    'SMS_CONFIG',
    'The quiet hours of the account have only one of two times. Give both, or leave both blank.',
  ],
  quietEqual: [
    'SMS_CONFIG',
    'The quiet hours of the account begin and end at the same time. Give two different times.',
  ],
  timeZoneUnknown: [
    'SMS_CONFIG',
    'The time zone of the account is not known here. Give a name such as Pacific/Auckland, or leave it blank.',
  ],
  apiKeyMissing: ['SMS_CONFIG', 'The account has no API key. Enter it in the account.'],
  userIdMissing: ['SMS_CONFIG', 'The account has no user name. Enter it in the account.'],
  passwordMissing: ['SMS_CONFIG', 'The account has no password. Enter it in the account.'],
  credentialElsewhere: [
    'SMS_CONFIG',
    '"{{field}}" was saved for another address, and is sent to no other. Enter it anew to test this one.',
  ],
  redisUrlMissing: ['SMS_CONFIG', 'The account has no Redis URL. Enter it in the account.'],
  apiKeyInvalid: [
    'SMS_CONFIG',
    'The API key of the account contains characters that no key has. Copy the key into the account again.',
  ],
  proxyInvalid: [
    'SMS_CONFIG',
    'The address of the proxy is not usable. Enter an address such as http://proxy.example.com:8080.',
  ],
  tlsMissing: [
    'SMS_CONFIG',
    'The TLS settings of the account do not exist, are disabled or are not deployed yet. Choose others, or deploy them.',
  ],
  proxyMissing: [
    'SMS_CONFIG',
    'The proxy of the account does not exist, is disabled or is not deployed yet. Choose another one, or deploy it.',
  ],
  redisUrlInvalid: [
    'SMS_CONFIG',
    'The Redis URL of the account is not usable. Enter an address that begins with redis:// or rediss:// and ends with the host, its port or the number of a database. Percent-encode special characters of the password.',
  ],
  callbackNodeMissing: [
    'SMS_CONFIG',
    'The sms callback node chosen for "{{field}}" does not exist or is disabled. Choose another one.',
  ],
  callbackNodeUrlMissing: [
    'SMS_CONFIG',
    'The sms callback node chosen for "{{field}}" has no usable public URL. Enter its public URL and its path.',
  ],
  callbackPathMissing: ['SMS_CONFIG', 'The callback has no path. Enter a path such as /sms/callback.'],
  callbackHttpOff: [
    'SMS_CONFIG',
    'Node-RED serves no HTTP nodes (httpNodeRoot is false), so that no callback can come in. Set httpNodeRoot in the settings of Node-RED.',
  ],
  callbackPathInvalid: [
    'SMS_CONFIG',
    'The path of the callback contains ? or #. Enter a path such as /sms/callback, and the token in its own field.',
  ],
  callbackPathTaken: [
    'SMS_CONFIG',
    'Another sms callback node already answers at {{path}}. Give this node another path.',
  ],

  recipientsType: [
    'SMS_INPUT',
    'The recipients are neither text nor a list of text and numbers. Give for example "6421555123" or ["6421555123"].',
  ],
  recipientsEmpty: ['SMS_INPUT', 'There is no recipient. Give at least one number, contact or group.'],
  recipientsTooMany: [
    'SMS_INPUT',
    'There are more than 5,000 recipients. Split the list, and send the text once for each part of it.',
  ],
  recipientNumber: [
    'SMS_INPUT',
    'The recipient {{item}} is not a number in international format. Give the country code and 7 to 15 digits in all, with no leading zero.',
  ],
  recipientInParts: [
    'SMS_INPUT',
    'The recipient {{item}} is not a whole number: a space separates recipients. Write the number without spaces, such as +6421555123, or give a list with one number in each item.',
  ],
  recipientPlus: [
    'SMS_INPUT',
    'The recipient {{item}} has a + that is not in front. Write one + in front of the number, or none.',
  ],
  recipientSpace: [
    'SMS_INPUT',
    'The recipient {{item}} contains a space, which separates recipients. Use a name without spaces.',
  ],
  bodyType: ['SMS_INPUT', 'The text is neither text, a number, a boolean nor a buffer. Convert it to text first.'],
  bodyEmpty: ['SMS_INPUT', 'There is no text to send. Give the message a text.'],
  bodyTooLong: [
    'SMS_INPUT',
    'The text has {{length}} characters, more than the {{limit}} that the account allows. Shorten it, or set "Maximum parts" (fragmentationLimit).',
  ],
  bodyTooManyParts: [
    'SMS_INPUT',
    'The text needs {{parts}} parts, more than "Maximum parts" (fragmentationLimit) allows: {{limit}}. Shorten it or allow more.',
  ],
  textType: ['SMS_INPUT', 'The field "{{field}}" is not text. Give text, or leave it blank.'],
  messageIdTooLong: ['SMS_INPUT', 'The messageId has {{length}} characters. Use at most 36.'],
  fragmentationLimit: [
    'SMS_INPUT',
    '"Maximum parts" (fragmentationLimit) is not a whole number of 1 or more. Correct it or leave it blank.',
  ],
  contentType: ['SMS_INPUT', 'The content type is not known. Use "text/plain" or "text/plain; charset=UTF-16".'],
  callbackUrl: ['SMS_INPUT', 'The field "{{field}}" is not a usable {{schemes}} URL. Correct it or leave it blank.'],
  mailto: [
    'SMS_INPUT',
    'The field "{{field}}" is not a usable e-mail callback. Give { mailto, subject, body } with an e-mail address in mailto.',
  ],
  feedSize: ['SMS_INPUT', 'The number of feed entries is not a whole number from 1 to 300. Correct it.'],
  expression: ['SMS_INPUT', 'The field "{{field}}" could not be evaluated: {{detail}}. Correct its expression.'],
  contextStore: [
    'SMS_INPUT',
    'The field "{{field}}" could not be read from its context store: {{detail}}. Check the store.',
  ],
  onceBlank: ['SMS_INPUT', 'The key for sending once is blank. Give 1 to 256 characters, or choose no key.'],
  onceLength: ['SMS_INPUT', 'The key for sending once has {{length}} characters. Use at most 256.'],
  onceTaken: [
    'SMS_INPUT',
    'The key for sending once already belongs to another text or other recipients; nothing was sent. Give each text a key of its own.',
  ],
  rememberType: [
    'SMS_INPUT',
    'The value to remember cannot be kept as JSON. Give text, numbers, lists or plain objects.',
  ],
  rememberTooLarge: ['SMS_INPUT', 'The value to remember is larger than 64 KiB. Remember less, such as an identifier.'],
  inputNumber: [
    'SMS_INPUT',
    'The field "{{field}}" is not a number from {{min}} to {{max}}. Correct it or leave it blank.',
  ],
  inputWhole: [
    'SMS_INPUT',
    'The field "{{field}}" is not a whole number from {{min}} to {{max}}. Correct it or leave it blank.',
  ],
  atInvalid: [
    'SMS_INPUT',
    'The time at which the text may leave is no time. Give a Date, milliseconds since 1970 or ISO 8601, such as 2026-12-24T18:00.',
  ],
  atTooFar: [
    'SMS_INPUT',
    'The time at which the text may leave is more than 366 days ahead. Send it later, or give an earlier time.',
  ],
  waitRange: [
    'SMS_INPUT',
    'The time to wait for a reply is not a number of minutes from {{min}} to {{max}}. Correct it or choose none.',
  ],

  badRequest: ['SMS_BAD_REQUEST', '{{detail}}'],
  badRequestBare: [
    'SMS_BAD_REQUEST',
    'The service refused the request and gave no reason. Check the fields of the message.',
  ],
  badRequestBareRead: [
    'SMS_BAD_REQUEST',
    'The service refused the request and gave no reason. Check the base URL of the account.',
  ],
  unauthorized: [
    'SMS_UNAUTHORIZED',
    'The service did not accept the credentials. Check the base URL and the credentials of the account.',
  ],
  forbidden: [
    'SMS_FORBIDDEN',
    'The service forbids this request{{detail}}. Check the recipients, the address book and the daily limit of the company.',
  ],
  forbiddenRead: [
    'SMS_FORBIDDEN',
    'The service does not permit reading with these credentials. Check the rights of the account.',
  ],
  serverError: ['SMS_SERVICE', 'The service failed with status {{status}}. Try again later.'],
  serverErrorUncertain: [
    'SMS_SERVICE',
    'The service failed with status {{status}}; the message may have been sent. Check with the service before sending it again.',
  ],
  tooManyRequests: [
    'SMS_SERVICE',
    'The service refused the request, since too many came at once (status 429). Send or poll more slowly, or try again later.',
  ],
  redirect: [
    'SMS_SERVICE',
    'The service answered with a redirect (status {{status}}), which is not followed. Check the base URL of the account.',
  ],
  statusUnexpected: [
    'SMS_SERVICE',
    'The service answered with the unexpected status {{status}}. Check the base URL of the account.',
  ],
  notFound: [
    'SMS_SERVICE',
    'There is no such service at this address (status 404). Check the base URL of the account.',
  ],
  serviceError: ['SMS_SERVICE', 'The service reported an error{{detail}}. No message was sent.'],
  responseUnreadable: [
    'SMS_RESPONSE',
    'The answer of the service could not be read: {{detail}}. Check the base URL of the account.',
  ],
  responseUncertain: [
    'SMS_RESPONSE',
    'The answer of the service could not be read ({{detail}}); the message may have been sent. Check with the service before sending it again.',
  ],
  responseTooLarge: [
    'SMS_RESPONSE',
    'The answer of the service is larger than 8 MiB and was not read. Check the base URL of the account.',
  ],
  responseCutOff: [
    'SMS_RESPONSE',
    'The answer of the service did not arrive whole ({{detail}}). Check the connection to the service.',
  ],
  callbackUnreadable: ['SMS_RESPONSE', '{{detail}}'],
  unreachable: [
    'SMS_UNREACHABLE',
    'The service at {{host}} could not be reached ({{detail}}); nothing was sent. Check the base URL, the network and the proxy.',
  ],
  unreachableRead: [
    'SMS_UNREACHABLE',
    'The service at {{host}} could not be reached ({{detail}}). Check the base URL, the network and the proxy.',
  ],
  proxyLogin: [
    'SMS_UNREACHABLE',
    'The proxy on the way to {{host}} wants a user name and a password ({{detail}}); it let nothing through. Enter them in the proxy of the account, or in the address that http_proxy or https_proxy holds.',
  ],
  proxyRefused: [
    'SMS_UNREACHABLE',
    'The proxy on the way to {{host}} does not allow this address ({{detail}}); it let nothing through. Have its administrator allow it, or enter it among the hosts that are reached without the proxy.',
  ],
  certificateUntrusted: [
    'SMS_UNREACHABLE',
    'The certificate of {{host}} is not trusted ({{detail}}). Choose TLS settings in the account that hold the CA certificate of whoever issued it.',
  ],
  certificateName: [
    'SMS_UNREACHABLE',
    'The certificate of {{host}} is for another host name ({{detail}}). Use a name of the certificate in the base URL, or enter it as the server name in the TLS settings of the account.',
  ],
  certificateDate: [
    'SMS_UNREACHABLE',
    'The certificate of {{host}} is not valid at this time ({{detail}}). Have it renewed, and check the clock of this machine.',
  ],
  noTls: [
    'SMS_UNREACHABLE',
    'The server at {{host}} speaks no TLS ({{detail}}). Check the port in the base URL. If the service has no https, use http and allow it in the account.',
  ],
  uncertain: [
    'SMS_UNCERTAIN',
    'The connection failed after the request had left ({{detail}}); the message may have been sent. Check with the service before sending it again.',
  ],
  uncertainBefore: [
    'SMS_UNCERTAIN',
    'The message was not sent again ({{detail}}); an earlier try may have been accepted. Check with the service before sending it again.',
  ],
  busy: [
    'SMS_BUSY',
    'The queue of texts to be sent is full (waiting: {{limit}}). Send more slowly, or raise "Queue limit" in the account.',
  ],
  busyScheduled: [
    'SMS_BUSY',
    'So many texts wait for their time already ({{limit}}); nothing was sent. Schedule fewer at a time.',
  ],
  closed: ['SMS_CLOSED', 'The flow was stopped before the message was sent. Send it again.'],
  closedRead: ['SMS_CLOSED', 'The flow was stopped before the request was made. Try again.'],
  undelivered: [
    'SMS_UNDELIVERED',
    'The flow did not acknowledge the message (attempts: {{attempts}}); it is given up.',
  ],
  unexpected: ['SMS_SERVICE', 'Something unexpected went wrong. Please report it with the log of Node-RED.'],
  storeUnavailable: [
    'SMS_STORE',
    'The inbox cannot be written ({{detail}}). Until it can, nothing is polled, and kept texts wait. Check free space and permissions, or the Redis server.',
  ],
  storeLocked: [
    'SMS_STORE',
    'Another process has the inbox in {{folder}} open ({{detail}}): polling is paused, and texts to be kept are refused. Give each Node-RED a user directory of its own, or choose Redis in the account.',
  ],
  storeDamaged: [
    'SMS_STORE',
    'The inbox in {{folder}} is damaged ({{detail}}): polling is paused, and texts to be kept are refused. It is left as it is: move the folder away to begin with an empty inbox.',
  ],
  storeGone: [
    'SMS_STORE',
    'The inbox in {{folder}} is gone: its files were deleted or moved while it was in use. Polling is paused, and texts to be kept are refused, until a new one has been begun. What is in hand is written there; what was seen, who opted out and what was remembered is lost.',
  ],
  storeLost: [
    'SMS_STORE',
    'The inbox in {{folder}} was damaged: a part of what it held could not be read and is gone ({{detail}}). Everything else goes on. Check the disk, and the web application for messages and texts that are missing.',
  ],
  storeUnreadable: [
    'SMS_STORE',
    'Something in the inbox cannot be read. It has been set aside here, and everything else goes on: {{place}}',
  ],
  databaseMissing: [
    'SMS_STORE',
    'There is no database for this machine ({{detail}}): nothing can be kept on disk, and polling is paused. Run Node-RED on Node.js 22.13 or later, or choose another inbox in the account.',
  ],
  databaseForeign: [
    'SMS_STORE',
    'The inbox in {{folder}} is a database that cannot be opened on this machine ({{detail}}). It is left as it is: nothing is polled, and kept texts wait. Let Node-RED deliver it where it ran before, or move the folder away to begin with an empty inbox.',
  ],
  keepRefused: [
    'SMS_STORE',
    'The text could not be kept ({{detail}}); nothing was sent. Check free space and permissions, or the Redis server, then send it again.',
  ],
  expired: [
    'SMS_EXPIRED',
    'The text could not leave within {{minutes}} min and was given up; nothing was sent. Check the connection to the service, or send it again.',
  ],
  expiredSeconds: [
    'SMS_EXPIRED',
    'The text could not leave within {{seconds}} s and was given up; nothing was sent. Check the connection to the service, or send it again.',
  ],
  quiet: [
    'SMS_QUIET',
    'The quiet hours of the account last until {{until}}; nothing was sent. Keep the text, or send it later.',
  ],
  optedOut: ['SMS_OPTED_OUT', 'The handset wants no more texts (it has opted out); nothing was sent to it.'],
  notAllowed: [
    'SMS_NOT_ALLOWED',
    'The number begins with none of the prefixes of the account; nothing was sent to it. Check the number, or the prefixes.',
  ],
  limitHandset: [
    'SMS_LIMIT',
    'The limit of texts to one number ({{limit}} in {{minutes}} min) is reached; nothing was sent. The limit of the account ends at {{until}}.',
  ],
  limitDay: [
    'SMS_LIMIT',
    'The limit of texts in 24 hours ({{limit}}) is reached; nothing was sent. The limit of the account ends at {{until}}.',
  ],
} as const satisfies Record<string, readonly [`SMS_${string}`, string]>;
