import fc from 'fast-check';
import { isLong } from './long';

// `npm test` uses the same cases in each run. `npm run test:long` uses new cases, and more of them.
fc.configureGlobal(isLong ? { numRuns: 10_000 } : { numRuns: 300, seed: 1 });

export default fc;
