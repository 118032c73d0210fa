interface Schema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

/** `field: description` of each field that has one, in the order of the schema. */
export function fieldsOf(schema: object): string[] {
  return collect(schema as Schema, '');
}

function collect({ properties = {}, items }: Schema, prefix: string): string[] {
  const inside = items ? collect(items, `${prefix}[]`) : [];
  const own = Object.entries(properties).flatMap(([name, schema]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const line = schema.description === undefined ? [] : [`${path}: ${schema.description}`];
    return [...line, ...collect(schema, path)];
  });
  return [...own, ...inside];
}
