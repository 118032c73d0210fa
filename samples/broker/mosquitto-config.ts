import { pbkdf2Sync, randomBytes } from 'node:crypto';

/** docs/install.md, "Broker: settings"; who may connect is said apart from them. */
export const RECOMMENDED_SETTINGS = `
message_size_limit 1048576
max_inflight_messages 1000
max_queued_messages 100000
max_queued_bytes 268435456
set_tcp_nodelay true
`;

export interface MosquittoAccess {
  /** Who may connect: passwords by name. Default: everybody. */
  users?: Readonly<Record<string, string>>;
  /** The content of an `acl_file`. Default: everybody may read and write everything. */
  acl?: string;
  /** Lines of mosquitto.conf. Default `RECOMMENDED_SETTINGS`. */
  settings?: string;
}

/**
 * A whole mosquitto.conf as docs/install.md shows it, with a listener for bases (8883) and one for controllers (8884), and
 * the files below /etc/mosquitto that it names.
 */
export interface MosquittoConf {
  conf: string;
  acls: Readonly<Record<string, string>>;
  /** Passwords by name, for each file of users. */
  users: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface ListenerPorts {
  bases: number;
  controllers: number;
}

/** The same for a broker of its own directory and ports, on loopback. */
export function filesOfConf(
  directory: string,
  ports: ListenerPorts,
  { conf, acls, users }: MosquittoConf,
): Record<string, string> {
  const lines = conf
    .replace('listener 8883\n', `listener ${ports.bases} 127.0.0.1\n`)
    .replace('listener 8884\n', `listener ${ports.controllers} 127.0.0.1\n`)
    .replaceAll('/etc/mosquitto/', `${directory}/`);
  const passwords = Object.entries(users).map(
    ([name, of]) => [name, Object.entries(of).map(passwordLine).join('')] as const,
  );
  return {
    'mosquitto.conf': `${[...ALWAYS, lines].join('\n')}\n`,
    ...acls,
    ...Object.fromEntries(passwords),
  };
}

const ALWAYS = [
  // As root it would become another user, who cannot read these files.
  'user root',
  'persistence false',
  // Unlike its output this is not buffered.
  'log_dest stderr',
  'connection_messages false',
];

/** The content of each file in the broker's directory, by name. */
export function mosquittoFiles(directory: string, port: number, access: MosquittoAccess): Record<string, string> {
  const { users, acl, settings = RECOMMENDED_SETTINGS } = access;
  const lines = [
    settings,
    `listener ${port} 127.0.0.1`,
    ...ALWAYS,
    users ? `password_file ${directory}/passwords` : 'allow_anonymous true',
    acl === undefined ? '' : `acl_file ${directory}/acl`,
  ];
  return {
    'mosquitto.conf': `${lines.join('\n')}\n`,
    ...(users ? { passwords: Object.entries(users).map(passwordLine).join('') } : {}),
    ...(acl === undefined ? {} : { acl }),
  };
}

/** As `mosquitto_passwd` writes it: format 7 = PBKDF2 with SHA-512. */
function passwordLine([name, password]: [string, string]): string {
  const salt = randomBytes(12);
  const rounds = 101;
  const hash = pbkdf2Sync(password, salt, rounds, 64, 'sha512');
  return `${name}:$7$${rounds}$${salt.toString('base64')}$${hash.toString('base64')}\n`;
}
