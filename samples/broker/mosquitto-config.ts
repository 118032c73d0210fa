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

/** The content of each file in the broker's directory, by name. */
export function mosquittoFiles(directory: string, port: number, access: MosquittoAccess): Record<string, string> {
  const { users, acl, settings = RECOMMENDED_SETTINGS } = access;
  const lines = [
    settings,
    `listener ${port} 127.0.0.1`,
    // As root it would become another user, who cannot read these files.
    'user root',
    'persistence false',
    // Unlike its output this is not buffered.
    'log_dest stderr',
    'connection_messages false',
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
