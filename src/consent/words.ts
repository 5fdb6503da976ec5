/** Meaning of a consent word: opt out or opt in. */
export type ConsentChange = 'out' | 'in';

/**
 * Built-in words by language of the editor.
 *
 * The English opt-out words are those of the FCC (47 CFR 64.1200(a)(10), in force since April 2025), with `stopall` and
 * `optout`. The other languages have no such source. Their words are common in messages of senders in these countries,
 * such as `arret`, `td` and 退订.
 *
 * The lists leave out everyday answers in any of these languages: *yes*, *no*, `n`, `t`, `alto`, `alta`, `para`, `fin`,
 * `basta`, `voltar`. They also leave out words that cancel an appointment: 취소, 取消, キャンセル, `annuler`, `отмена`. Opt-in
 * words must be even clearer.
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

/** Consent words of an account. `optOutWords` and `optInWords` replace the built-in words. */
export interface ConsentSettings {
  out: readonly string[];
  in: readonly string[];
}

/** Maximum length of a body that is compared with the words. */
const maxBodyLength = 1_600;

const separators = /[,\n]/;
const blanks = /[\p{White_Space}\p{Cf}\p{Cc}]+/gu;
/** Matches a word, without surrounding white space, punctuation, symbols, emoji and their variation selectors. */
const wordPattern =
  /[^\p{White_Space}\p{P}\p{S}\p{Cf}\p{Cc}\p{Mn}](?:.*[^\p{White_Space}\p{P}\p{S}\p{Cf}\p{Cc}\p{Mn}])?/su;

/**
 * Parses words or phrases, separated by commas or new lines. Blank: the built-in words of all languages.
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

function parseWords(change: ConsentChange, text = ''): string[] {
  const words = text
    .split(separators)
    .map(normaliseWord)
    .filter((word) => word !== '');
  return words.length > 0 ? words : builtIn.flatMap((language) => language[change].map(normaliseWord));
}

/** Returns the consent change that a body requests. The whole body must be one of the words. */
export type ReadConsentChange = (text: string) => ConsentChange | undefined;

/**
 * Combines the consent words of all members of an account. A word that occurs as opt-in and as opt-out means opt-out.
 */
export function createConsentReader(settings: readonly ConsentSettings[]): ReadConsentChange {
  const changeByWord = new Map<string, ConsentChange>();
  for (const change of ['in', 'out'] as const) {
    for (const words of settings) for (const word of words[change]) changeByWord.set(word, change);
  }
  return (text) => (text.length > maxBodyLength ? undefined : changeByWord.get(normaliseWord(text)));
}

/** Normalises a word for comparison: NFKC, lower case, single spaces, without surrounding punctuation and symbols. */
export function normaliseWord(text: string): string {
  const [word = ''] = wordPattern.exec(text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC')) ?? [];
  return word.replace(blanks, ' ');
}
