/** The kubelet's limit of the API for a message. */
const MAX_MESSAGE_BYTES = 1024;

/** Cuts at the limit of bytes, but not inside a character. */
export function cutMessage(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= MAX_MESSAGE_BYTES) return message;
  let end = MAX_MESSAGE_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
