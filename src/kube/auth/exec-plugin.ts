import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { type Clock, sleep } from '../../clock.ts';
import { type CredentialPlugin, configInvalid, readSource } from './cluster-access.ts';
import { ConfigFields } from './config-fields.ts';
import { bearerOf, type DatedCredential, keepCredential } from './credential-keeper.ts';
import type { SelectedContext } from './kubeconfig-file.ts';

const TIMEOUT_MS = 60_000;
const API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
/** Name of the extension of a cluster entry that holds the configuration of the plugin. */
const CLUSTER_EXTENSION = 'client.authentication.k8s.io/exec';

interface EnvVariable {
  readonly name: string;
  readonly value: string;
}

interface ExecCommand {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly EnvVariable[];
  readonly installHint: string | undefined;
}

/** The plugin of a user with `exec`: a program that prints an ExecCredential. */
export function execPluginOf({ cluster, user }: SelectedContext, clock: Clock): CredentialPlugin {
  const exec = user.fields('exec');
  const command = commandOf(exec);
  const isClusterWanted = exec.boolean('provideClusterInfo');
  const fetch = async (): Promise<DatedCredential> => {
    const spec = { interactive: false, ...(isClusterWanted && { cluster: await clusterInfoOf(cluster) }) };
    const info = JSON.stringify({ kind: 'ExecCredential', apiVersion: command.apiVersion, spec });
    return run({ ...command, env: [...command.env, { name: 'KUBERNETES_EXEC_INFO', value: info }] }, clock);
  };
  return keepCredential({ clock, fetch });
}

function commandOf(exec: ConfigFields): ExecCommand {
  const apiVersion = exec.requiredString('apiVersion');
  if (!API_VERSIONS.includes(apiVersion)) {
    throw configInvalid(exec.where('apiVersion'), `must be ${API_VERSIONS.join(' or ')}`);
  }
  if (exec.string('interactiveMode') === 'Always') {
    throw configInvalid(exec.where('interactiveMode'), 'cannot be Always: the controller has no terminal to ask on');
  }
  const command = exec.requiredString('command');
  return {
    apiVersion,
    // As in client-go, a command with a slash is relative to the kubeconfig, one without is looked up in the PATH.
    command: command.includes('/') ? resolve(dirname(exec.file), command) : command,
    args: exec.strings('args'),
    env: exec
      .entries('env')
      .map((entry) => ({ name: entry.requiredString('name'), value: entry.string('value') ?? '' })),
    installHint: exec.string('installHint'),
  };
}

async function clusterInfoOf(cluster: ConfigFields): Promise<object> {
  const ca = await readSource(cluster.pem('certificate-authority'));
  const extension = cluster.entries('extensions').find((entry) => entry.string('name') === CLUSTER_EXTENSION);
  return {
    server: cluster.string('server'),
    'tls-server-name': cluster.string('tls-server-name'),
    'insecure-skip-tls-verify': cluster.boolean('insecure-skip-tls-verify'),
    'certificate-authority-data': ca === undefined ? undefined : Buffer.from(ca).toString('base64'),
    config: extension?.raw('extension'),
  };
}

async function run(
  { apiVersion, command, args, env, installHint }: ExecCommand,
  clock: Clock,
): Promise<DatedCredential> {
  const library = await loadExecAuth();
  const plugin = new PluginProcess();
  library.execFn = plugin.spawn;
  const ending = library.applyAuthentication({ name: 'user', exec: { command, args, env } }, {}).catch(() => {});
  const ended = new AbortController();
  const late = sleep(clock, TIMEOUT_MS, ended.signal).then(() => `did not finish within ${TIMEOUT_MS / 1000} s`);
  // What the library makes of it is put aside: it knows no reason, and quotes what was printed.
  const lateness = await Promise.race([late, ending.then(() => undefined)]);
  ended.abort();
  const fault = lateness ?? plugin.fault;
  if (fault !== undefined) {
    plugin.kill();
    throw new Error(`${command} ${fault}${installHint === undefined ? '' : `\n${installHint}`}`);
  }
  try {
    return credentialOfOutput(plugin.output, apiVersion);
  } catch (error) {
    throw new Error(`${command}: ${(error as Error).message}`);
  }
}

interface ExecAuth {
  execFn: (command: string, args: readonly string[], options: SpawnOptions) => ChildProcess;
  applyAuthentication(user: object, options: object): Promise<void>;
}

/**
 * The library adds the variables to the environment and starts the program, with a `spawn` that its types hide and its
 * own tests replace, as here. A new instance each time, since it keeps what it got. Costs 85 MB once: only those pay
 * whose kubeconfig has `exec`.
 */
async function loadExecAuth(): Promise<ExecAuth> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const { authenticators } = new KubeConfig() as unknown as { authenticators: Partial<ExecAuth>[] };
  const found = authenticators.find((one) => typeof one.execFn === 'function');
  if (found === undefined) throw new Error('this version of @kubernetes/client-node cannot run plugins');
  return found as ExecAuth;
}

/** Reads the ExecCredential that a plugin printed. Errors never quote it: it holds secrets. */
function credentialOfOutput(text: string, apiVersion: string): DatedCredential {
  const output = new ConfigFields('its output', '', parseJson(text));
  if (output.string('kind') !== 'ExecCredential') throw new Error('its output is not an ExecCredential');
  if (output.string('apiVersion') !== apiVersion) throw new Error(`its output is not of ${apiVersion}, as configured`);
  const status = output.fields('status');
  const token = status.string('token');
  const cert = status.string('clientCertificateData');
  const key = status.string('clientKeyData');
  if ((cert === undefined) !== (key === undefined)) {
    throw new Error('its output has one of clientCertificateData and clientKeyData, not both');
  }
  if (token === undefined && cert === undefined) {
    throw new Error('its output has neither a token nor a client certificate');
  }
  const authorization = token === undefined ? undefined : bearerOf(token);
  return { credential: { authorization, cert, key }, expiresAtMs: expiryOf(status) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(text.trim() === '' ? 'it printed nothing' : 'its output is not JSON');
  }
}

function expiryOf(status: ConfigFields): number | undefined {
  const text = status.string('expirationTimestamp');
  if (text === undefined) return undefined;
  const expiresAtMs = Date.parse(text);
  if (Number.isNaN(expiresAtMs)) throw new Error('the expirationTimestamp in its output is not a time');
  return expiresAtMs;
}

const MAX_OUTPUT_CHARS = 1024 * 1024;
/** The end of what a program said is enough to find the fault. */
const MAX_COMPLAINT_CHARS = 500;

/** One run of a credential plugin: without a terminal or input, with bounded output. */
class PluginProcess {
  #child: ChildProcess | undefined;
  #output = '';
  #complaint = '';
  #fault: string | undefined = 'cannot be started: its arguments or variables are invalid or too long';

  /** In the form of `child_process.spawn`, for the library that calls it. */
  readonly spawn = (command: string, args: readonly string[], options: SpawnOptions): ChildProcess => {
    // A group of its own, so that `kill` also reaches what a shell script has started.
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.#child = child;
    this.#fault = undefined;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
      if (this.#output.length > MAX_OUTPUT_CHARS) this.#refuse('printed more than 1 MiB');
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-MAX_COMPLAINT_CHARS);
    });
    child.once('error', (error) => {
      this.#fault ??= `cannot be started: ${error.message}`;
    });
    child.once('exit', (code, signal) => {
      if (code !== 0) this.#fault ??= code === null ? `was terminated by ${signal}` : `ended with exit code ${code}`;
    });
    return child;
  };

  get output(): string {
    return this.#output;
  }

  /** Why the run has failed; undefined when it ended well. */
  get fault(): string | undefined {
    const complaint = this.#complaint.trim();
    return this.#fault === undefined || complaint === '' ? this.#fault : `${this.#fault}: ${complaint}`;
  }

  /** Ends it and all that it has started, if it still runs. */
  kill(): void {
    const { pid, stdout, stderr } = this.#child ?? {};
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // All of the group has ended.
    }
    stdout?.destroy();
    stderr?.destroy();
  }

  #refuse(fault: string): void {
    this.#fault ??= fault;
    this.kill();
  }
}
