import assert from 'node:assert/strict';
import { isLong, readSeed } from '../long';
import { type Campaign, createPlans, describeCampaign, runCampaign } from './campaign';
import { createFoundPlans } from './findings';
import { hunt } from './hunt';
import { applyMutant, loadLibrary } from './library';
import { mutants } from './mutants';
import { allWays, createPlan } from './plan';
import { describeFinding, shrink } from './shrink';
import { simulate } from './simulation';

/** How long `npm run test:long` runs new random schedules, in ms. */
const randomMs = 1_800_000;
const fixedSchedules = { in: 300, out: 150, consent: 150, replace: 150, ask: 60 };

describe('the simulation of the library', function () {
  this.timeout(randomMs + 600_000);
  const library = loadLibrary();

  /** Fails if a run broke a rule, and shows the shortest log that breaks the rule. */
  async function assertNothingFound(campaign: Campaign): Promise<void> {
    console.log(`      ${describeCampaign(campaign)}`);
    assert.ok(campaign.runs > 0, 'no schedule was run');
    const { failed } = campaign;
    if (failed) assert.fail(describeFinding(await shrink(library, failed)));
  }

  it('breaks no rule in schedules that once found a fault', async () => {
    await assertNothingFound(await runCampaign(library, createFoundPlans()));
  });

  it('breaks no rule in fixed schedules of events', async () => {
    for (const way of allWays) {
      const plans = createPlans(1, fixedSchedules[way], { way });
      await assertNothingFound(await runCampaign(library, plans));
    }
  });

  if (isLong) {
    it('breaks no rule in new random schedules of events', async () => {
      const first = readSeed();
      for (const [way, share] of [
        ['in', 0.4],
        ['out', 0.2],
        ['consent', 0.1],
        ['replace', 0.15],
        ['ask', 0.15],
      ] as const) {
        const untilMs = performance.now() + randomMs * share;
        // Without scenes, because scenes also find old faults. `npm run schedules` searches with scenes.
        const plans = createPlans(first, Number.POSITIVE_INFINITY, { way, scenes: 0 });
        await assertNothingFound(await runCampaign(library, plans, untilMs));
      }
    });
  }

  it('repeats a schedule exactly for the same seed', async () => {
    const stories: string[] = [];
    for (const _ of [1, 2]) {
      const lines: string[] = [];
      await simulate(library, createPlan(17), lines);
      stories.push(lines.join('\n'));
    }
    assert.ok((stories[0]?.length ?? 0) > 1_000);
    assert.equal(stories[0], stories[1]);
  });

  it('reduces a schedule to the few events that break a rule', async () => {
    const mutant = mutants.find(({ name }) => name === 'a record is acknowledged as soon as it is sent');
    assert.ok(mutant);
    const broken = loadLibrary(mutant);
    const { failed } = await runCampaign(broken, createPlans(1, 300));
    assert.ok(failed);
    const finding = await shrink(broken, failed);
    assert.ok(finding.plan.plannedEvents.length <= 3, describeFinding(finding));
    assert.match(describeFinding(finding), /breaks a rule: .*\n[\s\S]*the service has /);
  });

  it('has at least 40 different mutants of the library', () => {
    assert.ok(mutants.length >= 40);
    for (const mutant of mutants) assert.notEqual(applyMutant(mutant), '');
    assert.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length);
  });
});

describe('a bug planted in the library', function () {
  this.timeout(600_000);

  // The search for each mutant starts at a seed after which few schedules are necessary to find the mutant.
  for (const [name, seed] of [
    ['a poll answer is not saved before it is processed', 1],
    ['a saved poll answer is removed before it is processed', 1],
    ['a restart ignores the stored records', 29],
    ['a redeployed node counts the attempts of other nodes', 100],
    ['a repeated record counts as new', 2],
    ['a message with an unknown outcome is sent again', 46],
    ['a message is sent before the store notes the attempt', 1],
    ['limits are not checked again just before a send', 33],
    ['the store drops an outcome before the flow receives it', 1],
    ['a message is sent to a number that has opted out', 3],
    ['opt-out words are lost when the last node closes', 244],
    ['an import does not copy the opted-out numbers', 24],
    ['a message is sent before its scheduled time', 3],
    ['quiet hours have no effect', 3],
    ['a newer message does not replace the older one', 6],
    ['a reset does not prevent the retry of a message', 94],
    ['a reset removes a message but reports no outcome', 9],
    ['an unclear reply counts as an answer', 3],
    ['each unclear reply makes the node ask again', 3],
    ['a refused recipient reaches no output', 2],
  ] as const) {
    it(`is found: ${name}`, async () => {
      const mutant = mutants.find((one) => one.name === name);
      assert.ok(mutant);
      const { isCaught, by } = await hunt(mutant, 1_000, seed);
      assert.ok(isCaught, by);
    });
  }
});
