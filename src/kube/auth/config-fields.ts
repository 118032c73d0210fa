import { dirname, resolve } from 'node:path';
import { configInvalid, type TextSource } from './cluster-access.ts';

/** Reads the fields of one mapping of a kubeconfig; faults name the file and the field. Empty means absent. */
export class ConfigFields {
  readonly file: string;
  readonly #where: string;
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(file: string, where: string, value: unknown) {
    this.file = file;
    this.#where = where;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw configInvalid(`${file}: ${where === '' ? 'document' : where}`, 'must be a mapping');
    }
    this.#fields = value as Record<string, unknown>;
  }

  /** `file: users[admin].token`, for error messages. */
  where(field: string): string {
    return `${this.file}: ${this.#whereInFile(field)}`;
  }

  #whereInFile(field: string): string {
    return this.#where === '' ? field : `${this.#where}.${field}`;
  }

  has(field: string): boolean {
    const value = this.#fields[field];
    return value !== undefined && value !== null && value !== '';
  }

  raw(field: string): unknown {
    return this.#fields[field];
  }

  string(field: string): string | undefined {
    const value = this.#fields[field];
    if (!this.has(field)) return undefined;
    if (typeof value !== 'string') throw configInvalid(this.where(field), 'must be a string');
    return value;
  }

  requiredString(field: string): string {
    const value = this.string(field);
    if (value === undefined) throw configInvalid(this.where(field), 'is missing');
    return value;
  }

  boolean(field: string): boolean {
    const value = this.#fields[field];
    if (!this.has(field)) return false;
    if (typeof value !== 'boolean') throw configInvalid(this.where(field), 'must be true or false');
    return value;
  }

  list(field: string): readonly unknown[] {
    const value = this.#fields[field];
    if (!this.has(field)) return [];
    if (!Array.isArray(value)) throw configInvalid(this.where(field), 'must be a list');
    return value;
  }

  strings(field: string): readonly string[] {
    return this.list(field).map((value) => {
      if (typeof value !== 'string') throw configInvalid(this.where(field), 'must be a list of strings');
      return value;
    });
  }

  fields(field: string): ConfigFields {
    return new ConfigFields(this.file, this.#whereInFile(field), this.#fields[field] ?? {});
  }

  /** A list of mappings. */
  entries(field: string): readonly ConfigFields[] {
    const where = this.#whereInFile(field);
    return this.list(field).map((value, position) => new ConfigFields(this.file, `${where}[${position}]`, value));
  }

  /** A path relative to the file that names it. */
  path(field: string): string | undefined {
    const value = this.string(field);
    return value === undefined ? undefined : resolve(dirname(this.file), value);
  }

  /** `field` names a file, `field-data` is its content in base64 and wins, as in client-go. */
  pem(field: string): TextSource | undefined {
    const dataField = `${field}-data`;
    const data = this.string(dataField);
    if (data !== undefined) {
      return { text: Buffer.from(data, 'base64').toString('utf8'), where: this.where(dataField) };
    }
    const path = this.path(field);
    return path === undefined ? undefined : { path, where: this.where(field) };
  }

  refuse(field: string): void {
    if (this.has(field)) throw configInvalid(this.where(field), 'is not supported');
  }
}
