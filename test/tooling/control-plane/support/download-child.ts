/** A process that downloads into a cache; its options are the one argument, as JSON. */
import { downloadIntoCache } from '../../../../samples/control-plane/download-source.ts';

const options = JSON.parse(process.argv[2] ?? '');
await downloadIntoCache({ ...options, onProgress: (line: string) => process.stdout.write(`${line}\n`) });
