import fc from 'fast-check';
import { isLong } from './long';

// The same cases in each run of `npm test`; new and more cases in `npm run test:long`.
fc.configureGlobal(isLong ? { numRuns: 10_000 } : { numRuns: 300, seed: 1 });

export default fc;
