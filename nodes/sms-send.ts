import type { NodeAPI } from 'node-red';
import { registerSender } from './runtime/sender';

export = (RED: NodeAPI) => registerSender(RED, 'sms-send');
