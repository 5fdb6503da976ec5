/** The texts of one code, by reason. */
function ofCode<const Code extends `SMS_${string}`, const Texts extends Record<string, string>>(
  code: Code,
  texts: Texts,
) {
  const entries = Object.entries(texts).map(([reason, text]) => [reason, [code, text]]);
  return Object.fromEntries(entries) as { readonly [Reason in keyof Texts]: readonly [Code, Texts[Reason]] };
}

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
  ...ofCode('SMS_CONFIG', {
    noAccount: 'No account is chosen. Open the node and choose an SMS account.',
    accountMissing:
      'The account of the node does not exist, is disabled or is not deployed yet. Choose another one, or deploy it.',
    baseUrlMissing: 'The account has no base URL. Enter the address of the service in the account.',
    baseUrlInvalid:
      'The base URL of the account is not usable. Enter an address such as https://sms.example.com, without user name, query or fragment.',
    baseUrlHttp:
      'The base URL of the account is plain http, which would send the credentials unprotected. Use https, or allow http in the account.',
    settingNumber: 'The setting "{{setting}}" is not usable. Give a number from {{min}} to {{max}}.',
    settingWhole: 'The setting "{{setting}}" is not usable. Give a whole number from {{min}} to {{max}}.',
    variableMissing:
      'The environment variable {{variable}} is not set, or is blank. Set it for Node-RED, or enter the value itself.',
    variableOfSubflow:
      'The variable {{variable}} belongs to the subflow, which gives it no value of its own. Give it one in the properties of the subflow, or enter the value itself.',
    settingText: 'The setting "{{setting}}" is not text. Give text, or a variable that holds text.',
    settingTooLong: 'The setting "{{setting}}" is longer than 100,000 characters. Shorten it.',
    settingChoice: 'The setting "{{setting}}" is not usable. Give one of these values: {{choices}}.',
    prefixInvalid:
      'The prefixes of the account are not all beginnings of numbers. Give digits alone, with no leading zero, such as 64 61, or leave them blank.',
    timeOfDay: 'The setting "{{setting}}" is not a time of day. Give one such as 21:30, or leave it blank.',
    quietHalf: 'The quiet hours of the account have only one of two times. Give both, or leave both blank.',
    quietEqual: 'The quiet hours of the account begin and end at the same time. Give two different times.',
    timeZoneUnknown:
      'The time zone of the account is not known here. Give a name such as Pacific/Auckland, or leave it blank.',
    apiKeyMissing: 'The account has no API key. Enter it in the account.',
    userIdMissing: 'The account has no user name. Enter it in the account.',
    userIdColon:
      'A user name with a colon cannot be sent by HTTP Basic. Choose another authentication in the account, such as form parameters.',
    passwordMissing: 'The account has no password. Enter it in the account.',
    credentialElsewhere:
      '"{{field}}" was saved for another address, and is sent to no other. Enter it anew to test this one.',
    redisUrlMissing: 'The account has no Redis URL. Enter it in the account.',
    apiKeyInvalid:
      'The API key of the account contains characters that no key has. Copy the key into the account again.',
    proxyInvalid: 'The address of the proxy is not usable. Enter an address such as http://proxy.example.com:8080.',
    tlsMissing:
      'The TLS settings of the account do not exist, are disabled or are not deployed yet. Choose others, or deploy them.',
    proxyMissing:
      'The proxy of the account does not exist, is disabled or is not deployed yet. Choose another one, or deploy it.',
    redisUrlInvalid:
      'The Redis URL of the account is not usable. Enter an address that begins with redis:// or rediss:// and ends with the host, its port or the number of a database. Percent-encode special characters of the password.',
    callbackNodeMissing:
      'The sms callback node chosen for "{{field}}" does not exist or is disabled. Choose another one.',
    callbackNodeUrlMissing:
      'The sms callback node chosen for "{{field}}" has no usable public URL. Enter its public URL and its path.',
    callbackPathMissing: 'The callback has no path. Enter a path such as /sms/callback.',
    callbackHttpOff:
      'Node-RED serves no HTTP nodes (httpNodeRoot is false), so that no callback can come in. Set httpNodeRoot in the settings of Node-RED.',
    callbackPathInvalid:
      'The path of the callback contains ? or #. Enter a path such as /sms/callback, and the token in its own field.',
    callbackPathTaken: 'Another sms callback node already answers at {{path}}. Give one of the two another path.',
  }),
  ...ofCode('SMS_INPUT', {
    recipientsType:
      'The recipients are neither text nor a list of text and numbers. Give for example "6421555123" or ["6421555123"].',
    recipientsEmpty: 'There is no recipient. Give at least one number, contact or group.',
    recipientsTooMany:
      'There are more than 5,000 recipients. Split the list, and send the text once for each part of it.',
    recipientNumber:
      'The recipient {{item}} is not a number in international format. Give the country code and 7 to 15 digits in all, with no leading zero and no spaces.',
    recipientPlus: 'The recipient {{item}} has a + that is not in front. Write one + in front of the number, or none.',
    recipientSpace: 'The recipient {{item}} contains a space, which separates recipients. Use a name without spaces.',
    bodyType: 'The text is neither text, a number, a boolean nor a buffer. Convert it to text first.',
    bodyEmpty: 'There is no text to send. Give the message a text.',
    bodyTooLong:
      'The text has {{length}} characters, more than the {{limit}} that the account allows. Shorten it, or set "Maximum parts" (fragmentationLimit).',
    bodyTooManyParts:
      'The text needs {{parts}} parts, more than "Maximum parts" (fragmentationLimit) allows: {{limit}}. Shorten it or allow more.',
    textType: 'The field "{{field}}" is not text. Give text, or leave it blank.',
    messageIdTooLong: 'The messageId has {{length}} characters. Use at most 36.',
    fragmentationLimit:
      '"Maximum parts" (fragmentationLimit) is not a whole number of 1 or more. Correct it or leave it blank.',
    contentType: 'The content type is not known. Use "text/plain" or "text/plain; charset=UTF-16".',
    callbackUrl: 'The field "{{field}}" is not a usable {{schemes}} URL. Correct it or leave it blank.',
    mailto:
      'The field "{{field}}" is not a usable e-mail callback. Give { mailto, subject, body } with an e-mail address in mailto.',
    expression: 'The field "{{field}}" could not be evaluated: {{detail}}. Correct its expression.',
    contextStore: 'The field "{{field}}" could not be read from its context store: {{detail}}. Check the store.',
    onceBlank: 'The key for sending once is blank. Give 1 to 256 characters, or choose no key.',
    onceLength: 'The key for sending once has {{length}} characters. Use at most 256.',
    onceTaken:
      'The key for sending once already belongs to another text or other recipients; nothing was sent. Give each text a key of its own.',
    rememberType: 'The value to remember cannot be kept as JSON. Give text, numbers, lists or plain objects.',
    rememberTooLarge: 'The value to remember is larger than 64 KiB. Remember less, such as an identifier.',
    inputNumber: 'The field "{{field}}" is not a number from {{min}} to {{max}}. Correct it or leave it blank.',
    inputWhole: 'The field "{{field}}" is not a whole number from {{min}} to {{max}}. Correct it or leave it blank.',
    atInvalid:
      'The time at which the text may leave is no time. Give a Date, milliseconds since 1970 or ISO 8601, such as 2026-12-24T18:00.',
    atTooFar:
      'The time at which the text may leave is more than 366 days ahead. Send it later, or give an earlier time.',
  }),
  ...ofCode('SMS_BAD_REQUEST', {
    badRequest: '{{detail}}',
    badRequestBare: 'The service refused the request and gave no reason. Check the fields of the message.',
    badRequestBareRead: 'The service refused the request and gave no reason. Check the base URL of the account.',
  }),
  ...ofCode('SMS_UNAUTHORIZED', {
    unauthorized: 'The service did not accept the credentials. Check the base URL and the credentials of the account.',
  }),
  ...ofCode('SMS_FORBIDDEN', {
    forbidden:
      'The service forbids this request{{detail}}. Check the recipients, the address book and the daily limit of the company.',
    forbiddenRead: 'The service does not permit reading with these credentials. Check the rights of the account.',
  }),
  ...ofCode('SMS_SERVICE', {
    serverError: 'The service failed with status {{status}}. Try again later.',
    serverErrorUncertain:
      'The service failed with status {{status}}; the message may have been sent. Check with the service before sending it again.',
    tooManyRequests:
      'The service refused the request, since too many came at once (status 429). Send or poll more slowly, or try again later.',
    redirect:
      'The service answered with a redirect (status {{status}}), which is not followed. Check the base URL of the account.',
    statusUnexpected: 'The service answered with the unexpected status {{status}}. Check the base URL of the account.',
    notFound: 'There is no such service at this address (status 404). Check the base URL of the account.',
    serviceError: 'The service reported an error{{detail}}. No message was sent.',
    unexpected: 'Something unexpected went wrong. Please report it with the log of Node-RED.',
  }),
  ...ofCode('SMS_RESPONSE', {
    responseUnreadable: 'The answer of the service could not be read: {{detail}}. Check the base URL of the account.',
    responseUncertain:
      'The answer of the service could not be read ({{detail}}); the message may have been sent. Check with the service before sending it again.',
    responseTooLarge:
      'The answer of the service is larger than 8 MiB and was not read. Check the base URL of the account.',
    responseCutOff: 'The answer of the service did not arrive whole ({{detail}}). Check the connection to the service.',
    callbackUnreadable: '{{detail}}',
  }),
  ...ofCode('SMS_UNREACHABLE', {
    unreachable:
      'The service at {{host}} could not be reached ({{detail}}); nothing was sent. Check the base URL, the network and the proxy.',
    unreachableRead:
      'The service at {{host}} could not be reached ({{detail}}). Check the base URL, the network and the proxy.',
    proxyLogin:
      'The proxy on the way to {{host}} wants a user name and a password ({{detail}}); it let nothing through. Enter them in the proxy of the account, or in the address that http_proxy or https_proxy holds.',
    proxyRefused:
      'The proxy on the way to {{host}} does not allow this address ({{detail}}); it let nothing through. Have its administrator allow it, or enter it among the hosts that are reached without the proxy.',
    certificateUntrusted:
      'The certificate of {{host}} is not trusted ({{detail}}). Choose TLS settings in the account that hold the CA certificate of whoever issued it.',
    certificateName:
      'The certificate of {{host}} is for another host name ({{detail}}). Use a name of the certificate in the base URL, or enter it as the server name in the TLS settings of the account.',
    certificateDate:
      'The certificate of {{host}} is not valid at this time ({{detail}}). Have it renewed, and check the clock of this machine.',
    noTls:
      'The server at {{host}} speaks no TLS ({{detail}}). Check the port in the base URL. If the service has no https, use http and allow it in the account.',
    tlsInvalid:
      'No connection to {{host}} can be made with the TLS settings of the account ({{detail}}). Check their certificate, private key and passphrase.',
  }),
  ...ofCode('SMS_UNCERTAIN', {
    uncertain:
      'The connection failed after the request had left ({{detail}}); the message may have been sent. Check with the service before sending it again.',
    uncertainBefore:
      'The message was not sent again ({{detail}}); an earlier try may have been accepted. Check with the service before sending it again.',
  }),
  ...ofCode('SMS_BUSY', {
    busy: 'The queue of texts to be sent is full (waiting: {{limit}}). Send more slowly, or raise "Queue limit" in the account.',
    busyScheduled: 'So many texts wait for their time already ({{limit}}); nothing was sent. Schedule fewer at a time.',
  }),
  ...ofCode('SMS_CLOSED', {
    closed: 'The flow was stopped before the message was sent. Send it again.',
    closedRead: 'The flow was stopped before the request was made. Try again.',
  }),
  ...ofCode('SMS_UNDELIVERED', {
    undelivered: 'The flow did not acknowledge the message (attempts: {{attempts}}); it is given up.',
  }),
  ...ofCode('SMS_STORE', {
    storeUnavailable:
      'The inbox cannot be written ({{detail}}). Until it can, nothing is polled, and kept texts wait. Check free space and permissions, or the Redis server.',
    storeLocked:
      'Another process has the inbox in {{folder}} open ({{detail}}): polling is paused, and texts to be kept are refused. Give each Node-RED a user directory of its own, or choose Redis in the account.',
    storeDamaged:
      'The inbox in {{folder}} is damaged ({{detail}}): polling is paused, and texts to be kept are refused. It is left as it is: move the folder away to begin with an empty inbox.',
    storeGone:
      'The inbox in {{folder}} is gone: its files were deleted or moved while it was in use. Polling is paused, and texts to be kept are refused, until a new one has been begun. What is in hand is written there; what was seen, who opted out and what was remembered is lost.',
    storeUnreadable:
      'Something in the inbox cannot be read. It has been set aside here, and everything else goes on: {{place}}',
    databaseMissing:
      'There is no database for this machine ({{detail}}): nothing can be kept on disk, and polling is paused. Run Node-RED on Node.js 22.13 or later, or choose another inbox in the account.',
    databaseForeign:
      'The inbox in {{folder}} is a database that cannot be opened on this machine ({{detail}}). It is left as it is: nothing is polled, and kept texts wait. Let Node-RED deliver it where it ran before, or move the folder away to begin with an empty inbox.',
    keepRefused:
      'The text could not be kept ({{detail}}); nothing was sent. Check free space and permissions, or the Redis server, then send it again.',
    formerUnread:
      "It is not known yet what the account's former login or store has sent, or who has opted out there; nothing was sent. The log says what is in the way. Send the text again afterwards.",
  }),
  ...ofCode('SMS_EXPIRED', {
    expired:
      'The text could not leave within {{minutes}} min and was given up; nothing was sent. Check the connection to the service, or send it again.',
    expiredSeconds:
      'The text could not leave within {{seconds}} s and was given up; nothing was sent. Check the connection to the service, or send it again.',
  }),
  ...ofCode('SMS_QUIET', {
    quiet: 'The quiet hours of the account last until {{until}}; nothing was sent. Keep the text, or send it later.',
  }),
  ...ofCode('SMS_OPTED_OUT', {
    optedOut: 'The handset wants no more texts (it has opted out); nothing was sent to it.',
  }),
  ...ofCode('SMS_NOT_ALLOWED', {
    notAllowed:
      'The number begins with none of the prefixes of the account; nothing was sent to it. Check the number, or the prefixes.',
  }),
  ...ofCode('SMS_LIMIT', {
    limitHandset:
      'The limit of texts to one number ({{limit}} in {{minutes}} min) is reached; nothing was sent. The limit of the account ends at {{until}}.',
    limitDay:
      'The limit of texts in 24 hours ({{limit}}) is reached; nothing was sent. The limit of the account ends at {{until}}.',
  }),
};
