import type { Format } from './plan';
import type { Process } from './process';
import type { Random } from './random';
import type { Network } from './transport';
import type { Message, World } from './world';

const retriesForMs = 48 * 3_600_000;

/** Callbacks of the service (§6). It repeats each callback for up to 48 hours, until a status below 400 comes back. */
export class Callbacks {
  readonly #random: Random;

  constructor(
    private readonly world: World,
    private readonly network: Network,
    private readonly callees: () => readonly (Process | undefined)[],
  ) {
    this.#random = world.random.fork('callbacks');
  }

  begin(message: Message, format: Format): void {
    const untilMs = this.world.timeline.nowMs + retriesForMs;
    this.world.timeline.outside(this.#random.pick([0, 1, 5, 300]), () => this.#call(message, format, untilMs));
  }

  #call(message: Message, format: Format, untilMs: number): void {
    const { timeline } = this.world;
    if (timeline.nowMs > untilMs) return;
    let isOver = false;
    const again = (why: string) => {
      if (isOver) return;
      isOver = true;
      this.world.say(() => `the callback with ${message.name} fails: ${why}`);
      const delayMs = this.#random.pick(this.world.isCalm ? [500, 3_000] : [500, 3_000, 20_000]);
      timeline.outside(delayMs, () => this.#call(message, format, untilMs));
    };
    const callees = this.callees();
    const callee = callees[this.#random.below(callees.length)];
    const trouble = this.network.draw()?.trouble;
    if (!callee?.isAlive) return void again('no process');
    if (trouble === 'refused' || trouble === 'request lost') return void again(trouble);
    const latencyMs = trouble === 'slow' ? this.#random.below(20_000) : this.#random.pick([0, 1, 3, 20]);
    timeline.outside(latencyMs, () => {
      if (!callee.isAlive) return again('its process has died');
      this.world.say(() => `${callee.name} receives a callback with ${message.name} (${format})`);
      const { body, contentType } = formatCallback(message, format);
      timeline.outside(60_000, () => again('no answer'));
      void callee.callBack(message, Buffer.from(body), contentType).then((status) => {
        if (isOver || !callee.isAlive) return;
        this.world.say(() => `${callee.name} answers the callback with ${message.name}: ${status}`);
        if (trouble === 'answer cut off' || trouble === 'no answer') return again('its answer was lost');
        if (status >= 400) return again(`status ${status}`);
        isOver = true;
        message.callback = 'accepted';
      });
      // Checks every second whether the called process has died. If it has, the connection breaks, and the service
      // calls again.
      const watch = () => {
        if (isOver) return;
        if (callee.isAlive) timeline.outside(1_000, watch);
        else again('its process has died');
      };
      watch();
    });
  }
}

/** Body of a callback of the service (§6.4, §6.5). */
function formatCallback({ kind, fields }: Message, format: Format): { body: string; contentType: string } {
  const { messageId = '', from = '', body = '', inReplyToId = '', messageDate = '', statusCode = '' } = fields;
  if (format === 'form') {
    const form =
      kind === 'incoming' ? { messageId, from, inReplyToId, body } : { messageId, inReplyToId, from, statusCode };
    return { body: new URLSearchParams(form).toString(), contentType: 'application/x-www-form-urlencoded' };
  }
  const xml =
    kind === 'incoming'
      ? `<inbound-message messageId="${inReplyToId}" receivedDate="${messageDate}"><recipient msisdn="${from}"><body><![CDATA[${body}]]></body></recipient></inbound-message>`
      : `<status-update><messageId>${inReplyToId}</messageId><from>${from}</from><statusCode>${statusCode}</statusCode><statusId>${messageId}</statusId></status-update>`;
  return { body: `<?xml version="1.0"?>${xml}`, contentType: 'text/xml' };
}
