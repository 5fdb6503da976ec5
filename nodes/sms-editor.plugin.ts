import * as login from '../src/login';
import * as fields from '../src/wire/fields';
import * as answers from './forms/answers';
import { translateBadges } from './forms/badges';
import * as callbacks from './forms/callbacks';
import * as messageProperties from './forms/message-properties';
import * as readNow from './forms/read-now';
import * as rules from './forms/rules';
import * as sending from './forms/sending';
import * as shared from './forms/shared';
import * as limits from './limits';
import * as accountReport from './runtime/account-report';
import * as callbackPath from './runtime/callback-path';
import * as tab from './sidebar/tab';

/** Text of `forms/function-types.d.ts`. The build puts it here. */
declare const functionTypes: string;

/** The editor plugin, which loads once. The keys of `modules` are the paths from which the forms import the modules. */
RED.plugins.registerPlugin('sms-editor', {
  modules: {
    '../src/login': login,
    '../src/wire/fields': fields,
    './forms/answers': answers,
    './forms/callbacks': callbacks,
    './forms/message-properties': messageProperties,
    './forms/read-now': readNow,
    './forms/rules': rules,
    './forms/sending': sending,
    './forms/shared': shared,
    './limits': limits,
    './runtime/account-report': accountReport,
    './runtime/callback-path': callbackPath,
    './sidebar/tab': tab,
  },
  onadd() {
    translateBadges();
    RED.events.on('editor:open', addFunctionTypes);
  },
});

/**
 * Adds types to the code editor Monaco itself, because Node-RED has no interface for types. Monaco ignores types that it
 * already has. Runs when a form opens: in Node-RED 5, Monaco can still be loading when the plugin starts.
 */
function addFunctionTypes(): void {
  // In Node-RED 5, the interface of Monaco is in another place.
  const typescript = window.monaco?.typescript ?? window.monaco?.languages.typescript;
  typescript?.javascriptDefaults.addExtraLib(functionTypes, 'file://types/sms/index.d.ts');
}
