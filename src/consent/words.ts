/** What somebody who writes one of the words wants: no more texts, or texts again. */
export type ConsentChange = 'out' | 'in';

/**
 * The built-in words, by the languages of the editor.
 *
 * `out` in English are those that the FCC names (47 CFR 64.1200(a)(10), in force since April 2025), with `stopall` and `optout`. The rest have no
 * such source: they are the words for *stop*, *end the subscription* and *sign off* with which senders of those countries end their texts, such as
 * `arret`, `td` and 退订, by the judgement of whoever wrote them down.
 *
 * Left out is what is an everyday answer, there or in another of these languages: a bare *yes* or *no*, `n` and `t`; `alto` and `alta`, which
 * in Spanish and Portuguese are *high*, too; `para`, `fin`, `basta`, `voltar`; and 취소, 取消, キャンセル, `annuler`, `отмена`, with which people
 * cancel an appointment and which no rule names. What brings texts back is held to more than what ends them.
 */
const builtIn: readonly Readonly<Record<ConsentChange, readonly string[]>>[] = [
  // en-US
  {
    out: [
      'stop',
      'stopall',
      'stop all',
      'quit',
      'end',
      'revoke',
      'opt out',
      'optout',
      'opt-out',
      'cancel',
      'unsubscribe',
    ],
    in: ['start', 'unstop', 'opt in', 'optin', 'opt-in'],
  },
  // de
  { out: ['stopp', 'abmelden', 'abbestellen', 'austragen'], in: ['starten', 'wieder anmelden'] },
  // es-ES
  {
    out: ['baja', 'parar', 'cancelar', 'darme de baja', 'dar de baja', 'desuscribir', 'desuscribirme'],
    in: ['iniciar', 'reanudar', 'suscribir', 'suscribirme'],
  },
  // fr
  {
    out: ['arret', 'arrêt', 'arreter', 'arrêter', 'stopper', 'desabonner', 'désabonner', 'desinscrire', 'désinscrire'],
    in: ['reprendre', 'reabonner', 'réabonner', 'reinscrire', 'réinscrire'],
  },
  // ja
  {
    out: ['停止', '配信停止', '配信解除', '登録解除', '受信拒否', 'ストップ'],
    in: ['配信再開', '配信開始', '再開', 'スタート'],
  },
  // ko
  {
    out: ['수신거부', '수신 거부', '구독취소', '구독 취소', '구독해지', '구독 해지', '중지', '스톱'],
    in: ['수신동의', '수신 동의', '구독', '시작', '스타트'],
  },
  // pt-BR
  {
    out: ['parar', 'pare', 'sair', 'cancelar', 'descadastrar', 'descadastre'],
    in: ['iniciar', 'retomar', 'recadastrar', 'inscrever'],
  },
  // ru
  { out: ['стоп', 'отписка', 'отписаться', 'отпишите'], in: ['старт', 'подписка', 'подписаться'] },
  // zh-CN
  { out: ['td', '退订', '取消订阅', '停止', '拒收'], in: ['订阅', '重新订阅', '恢复订阅'] },
  // zh-TW
  { out: ['退訂', '取消訂閱', '停止', '拒收'], in: ['訂閱', '重新訂閱', '恢復訂閱'] },
];

/** Words that an account takes; those of `optOutWords` and `optInWords` stand in the place of the built-in ones. */
export interface ConsentSettings {
  out: readonly string[];
  in: readonly string[];
}

/** Longer than any text of which a word is all that is said. */
const longest = 1_600;

const separators = /[,\n]/;
const blanks = /[\p{White_Space}\p{Cf}\p{Cc}]+/gu;
/** All but what may surround a word, emoji with what changes their looks among it: from the first character that may not to the last. */
const surrounded =
  /[^\p{White_Space}\p{P}\p{S}\p{Cf}\p{Cc}\p{Mn}](?:.*[^\p{White_Space}\p{P}\p{S}\p{Cf}\p{Cc}\p{Mn}])?/su;

/**
 * Reads words or phrases that are separated by commas or new lines; those of the ten languages where there is none.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { parseConsentWords } from '@messaging-service/node-red-sms';
 *
 * assert.deepEqual(parseConsentWords('STOP, no more', 'START'), { out: ['stop', 'no more'], in: ['start'] });
 * ```
 */
export function parseConsentWords(outWords: string | undefined, inWords: string | undefined): ConsentSettings {
  return { out: parseWords('out', outWords), in: parseWords('in', inWords) };
}

function parseWords(wish: ConsentChange, text = ''): string[] {
  const own = text
    .split(separators)
    .map(normaliseWord)
    .filter((word) => word !== '');
  return own.length > 0 ? own : builtIn.flatMap((words) => words[wish].map(normaliseWord));
}

/** Says what a text wishes, all of which has to be one of the words. */
export type WishOf = (text: string) => ConsentChange | undefined;

/** Goes by the words of all settings. Who writes a word of both lists wants no more texts. */
export function createWishOf(settings: readonly ConsentSettings[]): WishOf {
  const wishes = new Map<string, ConsentChange>();
  for (const wish of ['in', 'out'] as const) {
    for (const words of settings) for (const word of words[wish]) wishes.set(word, wish);
  }
  return (text) => (text.length > longest ? undefined : wishes.get(normaliseWord(text)));
}

/** The form in which words are compared: NFKC, lower case, one space between words, without surrounding marks. */
export function normaliseWord(text: string): string {
  const [word = ''] = surrounded.exec(text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')) ?? [];
  return word.replace(blanks, ' ');
}
