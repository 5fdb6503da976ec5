import { MemoryStore } from '../../../src/store/memory';
import { testDriver } from './driver-suite';

describe('MemoryStore', () => {
  testDriver(() => new MemoryStore(), { isSwept: true });
});
