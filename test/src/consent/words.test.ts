import assert from 'node:assert/strict';
import { createConsentReader, parseConsentWords } from '../../../src/consent/words';

const builtIn = createConsentReader([parseConsentWords(undefined, undefined)]);

/** @param texts bodies of messages, separated by commas */
function assertWish(wish: 'out' | 'in' | undefined, texts: string): void {
  for (const text of texts.split(',')) assert.equal(builtIn(text), wish, text);
}

describe('the reader of consent words', () => {
  it('recognises the words of the FCC', () => {
    assertWish('out', 'stop,stopall,stop all,quit,end,revoke,opt out,optout,cancel,unsubscribe');
    assertWish('in', 'start,unstop,opt in');
  });

  it('recognises common words of ten languages', () => {
    assertWish('out', 'Stopp,abmelden,BAJA,arrêt,ARRÊT,配信停止,수신거부,SAIR,Стоп,退订,TD,退訂');
    assertWish('in', 'старт,配信再開,수신동의,恢复订阅,恢復訂閱');
  });

  it('ignores letter case and surrounding punctuation', () => {
    assertWish('out', ' STOP ,Stop!,"stop".,¡stop!,…stop…,stop 🙏🏽,🛑️ stop,\u200bstop\u200b,\nStop\r\n');
    assertWish('in', 'START.,(start)');
  });

  it('ignores differences of Unicode form and white space', () => {
    assertWish('out', 'ＳＴＯＰ,stop\u00a0all,opt \t\n out,arre\u0302t,ｽﾄｯﾌﾟ');
  });

  it('ignores a consent word within a longer body', () => {
    assertWish(undefined, 'please stop,stop it,stopped,s t o p,end of the road,stop stop,I start at 8,');
  });

  it('finds no consent word in everyday answers', () => {
    assertWish(undefined, 'yes,no,ok,ja,sí,si,oui,sim,да,はい,네,是,好,n,t,1');
    assertWish(undefined, 'alto,alta,para,fin,basta,voltar,weiter,annuler,отмена,取消,취소');
  });

  it('treats a word in both lists as an opt-out', () => {
    const words = createConsentReader([parseConsentWords('weg', 'da, start'), parseConsentWords('start', '')]);
    assert.equal(words('start'), 'out');
    assert.equal(words('da'), 'in');
  });

  it('keeps the built-in opt-in words if only opt-out words are set', () => {
    const words = createConsentReader([parseConsentWords('Ciao,\n basta  così ', '')]);
    for (const text of ['ciao', 'BASTA COSÌ!']) assert.equal(words(text), 'out');
    assert.equal(words('stop'), undefined);
    assert.equal(words('start'), 'in');
  });

  it('uses the built-in words if the property contains no word', () => {
    const words = createConsentReader([parseConsentWords(' , \n ', undefined)]);
    assert.equal(words('stop'), 'out');
  });

  it('combines the words of all account nodes', () => {
    const words = createConsentReader([parseConsentWords('weg', 'da'), parseConsentWords(undefined, undefined)]);
    for (const text of ['weg', 'stop']) assert.equal(words(text), 'out');
    for (const text of ['da', 'start']) assert.equal(words(text), 'in');
  });

  it('reads a body of 8 million characters', () => {
    for (const text of [' '.repeat(8e6), '!'.repeat(8e6), `stop${' '.repeat(1e6)}x`]) {
      assert.equal(builtIn(text), undefined);
    }
  });

  it('recognises no word without consent settings', () => {
    assert.equal(createConsentReader([])('stop'), undefined);
  });
});
