import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ApiClient } from '../../../samples/control-plane/api-client.ts';
import { AUTHORITY_NAME } from '../../../samples/control-plane/bootstrap.ts';
import { openCertificateAuthority } from '../../../samples/control-plane/certificates.ts';
import { ControlPlaneAccess } from '../../../samples/control-plane/control-plane-access.ts';
import type { ControlPlanePool } from './pool.ts';

/** The one line that a borrower reads. A loan lasts as long as its connection: nobody keeps one by dying. */
type Loan = { server: string; certificate: string; privateKey: string; directory: string } | { error: string };

/** Lends control planes of a pool to other processes, through a socket in a directory of its own. */
export class LoanDesk {
  readonly #pool: ControlPlanePool;
  readonly #server: Server;
  readonly #directory: string;

  private constructor(pool: ControlPlanePool, directory: string) {
    this.#pool = pool;
    this.#directory = directory;
    this.#server = createServer((socket) => void this.#serve(socket));
  }

  static async open(pool: ControlPlanePool): Promise<LoanDesk> {
    const desk = new LoanDesk(pool, await mkdtemp(join(tmpdir(), 'control-planes-')));
    await once(desk.#server.listen(desk.path), 'listening');
    return desk;
  }

  get path(): string {
    return join(this.#directory, 'loans.sock');
  }

  async close(): Promise<void> {
    this.#server.close();
    await this.#pool.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #serve(socket: Socket): Promise<void> {
    const gone = once(socket.on('error', () => {}).resume(), 'close');
    const answer = (loan: Loan): void => void socket.write(`${JSON.stringify(loan)}\n`);
    try {
      const { controlPlane, release } = await this.#pool.lend();
      const { server, directory, authority } = controlPlane;
      answer({ server, directory, certificate: authority.certificate, privateKey: authority.privateKey });
      await gone;
      await release();
    } catch (error) {
      answer({ error: String(error) });
      socket.end();
    }
  }
}

/** A control plane of the pool, until `stop`. Nobody else works on it, and it is as after a start with `deploy/`. */
export class BorrowedControlPlane extends ControlPlaneAccess {
  readonly #socket: Socket;

  private constructor(loan: Exclude<Loan, { error: string }>, socket: Socket) {
    const authority = openCertificateAuthority(AUTHORITY_NAME, loan);
    const credential = authority.issue({ commonName: 'admin', organizations: ['system:masters'] });
    const admin = new ApiClient({ server: loan.server, certificateAuthority: authority.certificate, credential });
    super({ ...loan, admin, authority });
    this.#socket = socket;
  }

  /** Resolves in seconds: at once when one is free, else when another has started. */
  static async at(path: string): Promise<BorrowedControlPlane> {
    const socket = connect(path);
    const lines = createInterface(socket);
    const [line] = await Promise.race([
      once(lines, 'line'),
      once(lines, 'close').then(() => Promise.reject(new Error(`${path} lends nothing`))),
    ]);
    const loan = JSON.parse(line) as Loan;
    if ('error' in loan) throw new Error(loan.error);
    return new BorrowedControlPlane(loan, socket);
  }

  async stop(): Promise<void> {
    await Promise.all([this.closeClients(), this.admin.close()]);
    this.#socket.destroy();
  }
}
