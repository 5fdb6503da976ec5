/** Combines the text of each reason with its error code. */
function ofCode<const Code extends `SMS_${string}`, const Texts extends Record<string, string>>(
  code: Code,
  texts: Texts,
) {
  const entries = Object.entries(texts).map(([reason, text]) => [reason, [code, text]]);
  return Object.fromEntries(entries) as { readonly [Reason in keyof Texts]: readonly [Code, Texts[Reason]] };
}

/**
 * All reasons of errors: the code and the English message. A message states the problem, whether anything was sent, and
 * the remedy. `{{name}}` stands for a parameter. The catalogs of the nodes have the translations, under the same names.
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
      'The account of the node does not exist, is disabled or is not deployed yet. Choose another account, or deploy this one.',
    baseUrlMissing: 'The account has no base URL. Enter the address of the service in the account.',
    baseUrlInvalid:
      'The base URL of the account cannot be used. Enter an address such as https://sms.example.com, without user name, query or fragment.',
    baseUrlHttp:
      'The base URL of the account is plain http, which would send the credentials unprotected. Use https, or allow http in the account.',
    settingNumber: 'The setting "{{setting}}" is not a number from {{min}} to {{max}}. Correct it, or leave it blank.',
    settingWhole:
      'The setting "{{setting}}" is not a whole number from {{min}} to {{max}}. Correct it, or leave it blank.',
    variableMissing:
      'The environment variable {{variable}} is not set, or is blank. Set it for Node-RED, or enter the value itself.',
    variableOfSubflow:
      'The variable {{variable}} of the subflow has no value. Enter one in the properties of the subflow, or enter the value in the node.',
    answersInvalid:
      'The answers are not usable. Enter at most {{maxAnswers}} answers, each with a value of 1 to {{maxValue}} characters and 1 to {{maxWords}} words of at most {{maxWord}} characters.',
    answerWordTwice: 'The word "{{word}}" stands for two answers. Remove it from one of them.',
    settingText: 'The setting "{{setting}}" is not text. Enter text, or a variable that holds text.',
    settingChoice: 'The setting "{{setting}}" has an unknown value. Use one of these values: {{choices}}.',
    prefixInvalid:
      'The prefixes of the account are not all beginnings of numbers. Enter digits without a leading zero, such as 64 61, or leave them blank.',
    timeOfDay: 'The setting "{{setting}}" is not a time of day. Enter a time such as 21:30, or leave it blank.',
    quietHalf: 'The quiet hours of the account have only one of two times. Enter both, or leave both blank.',
    quietEqual: 'The quiet hours of the account begin and end at the same time. Enter two different times.',
    timeZoneUnknown:
      'The time zone of the account does not exist on this machine. Enter a name such as Pacific/Auckland, or leave it blank.',
    apiKeyMissing: 'The account has no API key. Enter it in the account.',
    userIdMissing: 'The account has no user name. Enter it in the account.',
    userIdColon:
      'A user name with a colon cannot be sent by HTTP Basic. Choose another authentication in the account, such as form parameters.',
    passwordMissing: 'The account has no password. Enter it in the account.',
    credentialElsewhere:
      '"{{field}}" was saved for another address, and is not sent to this one. Enter it again to test this address.',
    redisUrlMissing: 'The account has no Redis URL. Enter it in the account.',
    apiKeyInvalid:
      'The API key of the account contains characters that an API key cannot have. Copy the key into the account again.',
    proxyInvalid: 'The address of the proxy cannot be used. Enter an address such as http://proxy.example.com:8080.',
    tlsMissing:
      'The TLS settings of the account do not exist, are disabled or are not deployed yet. Choose others, or deploy them.',
    proxyMissing:
      'The proxy of the account does not exist, is disabled or is not deployed yet. Choose another proxy, or deploy this one.',
    redisUrlInvalid:
      'The Redis URL of the account cannot be used. Enter an address that begins with redis:// or rediss:// and ends with the host, its port or the number of a database. Percent-encode special characters of the password.',
    callbackNodeMissing:
      'The sms callback node for "{{field}}" is not chosen, does not exist or is disabled. Nothing was sent. Choose another node.',
    callbackNodeUrlMissing:
      'The sms callback node for "{{field}}" has no usable public URL. Nothing was sent. Enter its public URL and its path.',
    callbackPathMissing: 'The callback has no path. Enter a path such as /sms/callback.',
    callbackHttpOff:
      'Node-RED serves no HTTP nodes (httpNodeRoot is false), so callbacks cannot come in. Set httpNodeRoot in the settings of Node-RED.',
    callbackPathInvalid:
      'The path of the callback contains ? or #. Enter a path such as /sms/callback, and enter the token in its own field.',
    callbackPathTaken: 'Another sms callback node already has the path {{path}}. Change one of the two paths.',
  }),
  ...ofCode('SMS_INPUT', {
    recipientsType:
      'The recipients are neither text nor a list of text and numbers. Nothing was sent. Use for example "6421555123" or ["6421555123"].',
    recipientsEmpty: 'The message has no recipient. Nothing was sent. Give at least one number, contact or group.',
    recipientsTooMany:
      'The message has more than 5,000 recipients. Nothing was sent. Split the list, and send the message once for each part.',
    recipientNumber:
      'The recipient {{item}} is not a number in international format. Nothing was sent. Give the country code and 7 to 15 digits in all, without a leading zero and without spaces.',
    recipientDecimal:
      'The recipient {{item}} reads as a decimal number. Nothing was sent. Give the number as text without a decimal point or an exponent, such as "6421555123".',
    recipientSplit:
      'Spaces split the number {{item}} into several recipients. Nothing was sent. Write it without spaces ({{joined}}), or as an item of a list.',
    recipientSender: 'The sender {{item}} is a name and cannot be answered. Nothing was sent. Set another recipient.',
    recipientPlus:
      'The recipient {{item}} has a + that is not in front. Nothing was sent. Write one + in front of the number, or none.',
    recipientSpace:
      'The recipient {{item}} contains a space, which separates recipients. Nothing was sent. Use a name without spaces.',
    bodyType: 'The body is neither text, a number, a boolean nor a buffer. Nothing was sent. Convert it to text first.',
    bodyEmpty: 'The body of the message is blank. Nothing was sent. Give the message a body.',
    bodyTooLong:
      'The body has {{length}} characters, more than the {{limit}} that the account allows. Nothing was sent. Shorten it, or set "Maximum parts" (fragmentationLimit).',
    bodyTooManyParts:
      'The body needs {{parts}} parts, more than "Maximum parts" (fragmentationLimit) allows: {{limit}}. Nothing was sent. Shorten it, or allow more parts.',
    textType: 'The field "{{field}}" is not text. Nothing was sent. Give text, or leave it blank.',
    messageIdTooLong: 'The messageId has {{length}} characters. Nothing was sent. Use at most 36.',
    fragmentationLimit:
      '"Maximum parts" (fragmentationLimit) is not a whole number of 1 or more. Nothing was sent. Correct it, or leave it blank.',
    contentType: 'The content type is not known. Nothing was sent. Use "text/plain" or "text/plain; charset=UTF-16".',
    callbackUrl:
      'The field "{{field}}" is not a usable {{schemes}} URL. Nothing was sent. Correct it, or leave it blank.',
    mailto:
      'The field "{{field}}" is not a usable e-mail callback. Nothing was sent. Give { mailto, subject, body } with an e-mail address in mailto.',
    expression: 'The field "{{field}}" could not be evaluated: {{detail}}. Correct its expression.',
    template: 'The template in the field "{{field}}" cannot be read: {{detail}}. Nothing was sent. Correct its tags.',
    contextStore: 'The field "{{field}}" could not be read from its context store: {{detail}}. Check the store.',
    keyBlank: 'The field "{{field}}" is blank. Nothing was sent. Give 1 to 256 characters, or choose no key.',
    keyLength: 'The field "{{field}}" has {{length}} characters. Nothing was sent. Use at most 256.',
    replaceNotStored:
      'The message has a key of "replace" and is not stored. Nothing was sent. Set "Store until sent" or a time.',
    onceTaken:
      'The deduplication key already belongs to a message with another body or other recipients. Nothing was sent. Give each message a key of its own.',
    rememberType:
      'The value to remember cannot be stored as JSON. Nothing was sent. Give text, numbers, lists or plain objects.',
    rememberTooLarge:
      'The value to remember is larger than 64 KiB. Nothing was sent. Remember less, such as an identifier.',
    inputNumber: 'The field "{{field}}" is not a number from {{min}} to {{max}}. Correct it, or leave it blank.',
    inputWhole: 'The field "{{field}}" is not a whole number from {{min}} to {{max}}. Correct it, or leave it blank.',
    atInvalid:
      'The earliest time to send ("at") is not a time. Nothing was sent. Give a Date, milliseconds since 1970 or ISO 8601, such as 2026-12-24T18:00.',
    atSeconds:
      'The earliest time to send ("at") is in seconds. Nothing was sent. Give milliseconds since 1970: multiply it by 1000.',
    atTooFar:
      'The earliest time to send ("at") is more than 366 days ahead. Nothing was sent. Send the message later, or give an earlier time.',
  }),
  ...ofCode('SMS_BAD_REQUEST', {
    badRequest: '{{detail}}',
    badRequestBare:
      'The service refused the request and gave no reason. Nothing was sent. Check the fields of the message.',
    badRequestBareRead: 'The service refused the request and gave no reason. Check the base URL of the account.',
  }),
  ...ofCode('SMS_UNAUTHORIZED', {
    unauthorized: 'The service did not accept the credentials. Check the base URL and the credentials of the account.',
  }),
  ...ofCode('SMS_FORBIDDEN', {
    forbidden:
      'The service forbids this request{{detail}}. Nothing was sent. Check the recipients, the address book and the daily limit of the company.',
    forbiddenRead: 'The service does not allow these credentials to read. Check the rights of the account.',
  }),
  ...ofCode('SMS_SERVICE', {
    serverError: 'The service failed with status {{status}}. Try again later.',
    serverErrorUncertain:
      'The service failed with status {{status}}. The message might have been sent. Check with the service before you send it again.',
    statusUncertain:
      'The service answered with the unexpected status {{status}}. The message might have been sent. Check with the service before you send it again.',
    tooManyRequests:
      'The service refused the request because too many came at the same time (status 429). Send or poll more slowly, or try again later.',
    redirect:
      'The service answered with a redirect (status {{status}}), which is not followed. Check the base URL of the account.',
    statusUnexpected: 'The service answered with the unexpected status {{status}}. Check the base URL of the account.',
    notFound: 'The service does not exist at this address (status 404). Check the base URL of the account.',
    serviceError: 'The service reported an error{{detail}}. Nothing was sent. Check the message.',
    unexpected: 'An unexpected error occurred. Please report it with the log of Node-RED.',
  }),
  ...ofCode('SMS_RESPONSE', {
    responseUnreadable: 'The answer of the service could not be read: {{detail}}. Check the base URL of the account.',
    responseUncertain:
      'The answer of the service could not be read ({{detail}}). The message might have been sent. Check with the service before you send it again.',
    responseTooLarge:
      'The answer of the service is larger than 8 MiB and was not read. Check the base URL of the account.',
    responseCutOff: 'The answer of the service was cut off ({{detail}}). Check the connection to the service.',
    callbackUnreadable: '{{detail}}',
  }),
  ...ofCode('SMS_UNREACHABLE', {
    storedWaiting: 'The message is stored and will be sent when the service is available again ({{waiting}} waiting).',
    unreachable:
      'The service at {{host}} could not be reached ({{detail}}). Nothing was sent. Check the base URL, the network and the proxy.',
    unreachableRead:
      'The service at {{host}} could not be reached ({{detail}}). Check the base URL, the network and the proxy.',
    proxyLogin:
      'The proxy to {{host}} needs a user name and a password ({{detail}}). No request was made. Enter them in the proxy of the account, or in the proxy address of the environment (e.g. https_proxy).',
    proxyRefused:
      'The proxy to {{host}} does not allow this address ({{detail}}). No request was made. Ask its administrator to allow it, or exclude the host from the proxy.',
    certificateUntrusted:
      'The certificate of {{host}} is not trusted ({{detail}}). No request was made. Choose TLS settings in the account that contain the certificate of its issuer (CA).',
    certificateName:
      'The certificate of {{host}} is for another host name ({{detail}}). No request was made. Use a name of the certificate in the base URL, or enter it as the server name in the TLS settings of the account.',
    certificateDate:
      'The certificate of {{host}} is not valid at this time ({{detail}}). No request was made. Have it renewed, and check the clock of this machine.',
    noTls:
      'The server at {{host}} does not speak TLS ({{detail}}). No request was made. Check the port in the base URL. If the service has no https, use http and allow it in the account.',
    tlsInvalid:
      'The TLS settings of the account do not allow a connection to {{host}} ({{detail}}). No request was made. Check their certificate, private key and passphrase.',
  }),
  ...ofCode('SMS_UNCERTAIN', {
    uncertain:
      'The connection failed after the request had left ({{detail}}). The message might have been sent. Check with the service before you send it again.',
    uncertainBefore:
      'The message was not sent again ({{detail}}), but an earlier try might have been accepted. Check with the service before you send it again.',
  }),
  ...ofCode('SMS_BUSY', {
    busy: 'The queue of messages is full (waiting: {{limit}}). Nothing was sent. Send more slowly, or raise "Queue limit" in the account.',
    busyReads:
      'The queue of reads is full (waiting: {{limit}}). Nothing was read. Read less often, or raise "Queue limit" in the account.',
    busyCallbacks:
      'A callback was refused, because too many received messages wait for the flow ({{limit}}). The service calls again. Let the flow acknowledge messages faster.',
    busyScheduled: 'Too many messages are scheduled ({{limit}}). Nothing was sent. Schedule fewer messages at a time.',
  }),
  ...ofCode('SMS_CLOSED', {
    closed: 'The flow was stopped before the message was sent. Send it again.',
    closedRead: 'The flow was stopped before the request was made. Try again.',
  }),
  ...ofCode('SMS_UNDELIVERED', {
    undelivered:
      'The flow did not acknowledge the message (attempts: {{attempts}}). It is now an unhandled message. Deliver it again in the SMS sidebar.',
  }),
  ...ofCode('SMS_STORE', {
    storeUnavailable:
      'The store cannot be written ({{detail}}). Polling pauses, and stored messages wait until it can. Check free space and permissions, or the Redis server.',
    storeLocked:
      'Another process has opened the store in {{folder}} ({{detail}}). Polling pauses, and messages to be stored are refused. Give each Node-RED a user directory of its own, or choose Redis in the account.',
    storeDamaged:
      'The store in {{folder}} is damaged ({{detail}}). Polling pauses, and messages to be stored are refused. The store is left as it is: move the folder away to start with an empty store.',
    storeGone:
      'The files of the store in {{folder}} were deleted or moved while Node-RED ran. Polling pauses, and messages to be stored are refused, until a new store is ready. It contains what this process has in memory. Identifiers already seen, opted-out numbers and remembered messages are lost.',
    storeUnreadable: 'An entry of the store cannot be read. It was moved to {{place}}, and everything else continues.',
    databaseMissing:
      'No database works on this machine ({{detail}}). Nothing can be stored on disk, and polling pauses. Run Node-RED on Node.js 22.13 or later, or choose another store in the account.',
    databaseForeign:
      'The store in {{folder}} is a database that cannot be opened on this machine ({{detail}}). It is left as it is, polling pauses, and stored messages wait. Run Node-RED on the former machine until they are delivered, or move the folder away to start with an empty store.',
    keepRefused:
      'The message could not be stored ({{detail}}). Nothing was sent. Check free space and permissions, or the Redis server, then send it again.',
    formerUnread:
      'The former login or store ({{former}}) has not been imported: {{detail}}. Until it is, polling pauses, and messages that need the store are not sent. The import is tried again every 10 s. Make the former store readable, or choose "Start without it" on the card of the account.',
    formerUrl:
      'The data of the account is on a Redis server whose URL the account no longer has, and has not been imported. Enter the former Redis URL again, or choose "Start without it" on the card of the account.',
    storeDropped:
      'The log of the store in {{folder}} was damaged: {{bytes}} bytes were dropped when the store was opened, so messages might be lost. Check the disk.',
  }),
  ...ofCode('SMS_EXPIRED', {
    expired:
      'The message could not leave within {{minutes}} min and has expired. Nothing was sent. Check the connection to the service, or send it again.',
    expiredSeconds:
      'The message could not leave within {{seconds}} s and has expired. Nothing was sent. Check the connection to the service, or send it again.',
  }),
  ...ofCode('SMS_REPLACED', {
    replaced: 'A newer input with the same key replaced the stored message. Nothing was sent of this one.',
  }),
  ...ofCode('SMS_WITHDRAWN', {
    withdrawn: 'A reset withdrew the stored message. Nothing was sent.',
  }),
  ...ofCode('SMS_QUIET', {
    quiet:
      'Quiet hours of the account: sending resumes at {{until}}. Nothing was sent. Store the message ("Store until sent"), or send it later.',
  }),
  ...ofCode('SMS_OPTED_OUT', {
    optedOut:
      'This number has opted out and gets no more messages. Nothing was sent to it. It can opt in again with a word such as START.',
  }),
  ...ofCode('SMS_NOT_ALLOWED', {
    notAllowed:
      'The number begins with none of the prefixes of the account. Nothing was sent to it. Check the number, or the prefixes.',
  }),
  ...ofCode('SMS_LIMIT', {
    limitHandset:
      'The limit of messages to one number ({{limit}} in {{minutes}} min) is reached. Nothing was sent. The limit of the account ends at {{until}}.',
    limitDay:
      'The limit of messages in 24 hours ({{limit}}) is reached. Nothing was sent. The limit of the account ends at {{until}}.',
  }),
};
