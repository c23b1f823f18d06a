/** The term index in PostgreSQL: a table per declared table, filled by a trigger from the column of terms. */
import type { TableRef, TermIndex } from '../sql/dialect.ts'
import { ident, type SqlText, sql } from '../sql/sql-text.ts'
import { comparedMark, termsColumn, termTable } from './term-index.ts'

const instanceColumn = ident('_instance')

const qualified = ({ namespace, name }: TableRef): SqlText => sql`${ident(namespace)}.${ident(name)}`

const triggerOf = ({ name }: TableRef): SqlText => ident(`${name}_kept`)

/** Within the quotes of the body. */
const quotedMark: SqlText = { text: `''${comparedMark}''`, values: [] }

/** The body is fixed text between quotes: names are declared ones, which have none. */
function createFunction(terms: TableRef): SqlText {
  const target = qualified(terms)
  const [columns, ofNew, ofOld] = terms.perInstance
    ? [sql`${instanceColumn}, `, sql`NEW.${instanceColumn}, `, sql`${instanceColumn} = OLD.${instanceColumn} AND `]
    : [sql``, sql``, sql``]
  return sql`CREATE FUNCTION ${target}() RETURNS trigger LANGUAGE plpgsql AS '
    BEGIN
      IF TG_OP <> ''INSERT'' THEN
        DELETE FROM ${target} WHERE ${ofOld}"key" = OLD."id"
          AND term IN (SELECT entry.key FROM json_each_text(OLD.${termsColumn}) AS entry);
      END IF;
      IF TG_OP <> ''DELETE'' THEN
        INSERT INTO ${target} (${columns}term, "key", weight)
          SELECT ${ofNew}entry.key, NEW."id", entry.value::int FROM json_each_text(NEW.${termsColumn}) AS entry
          WHERE left(entry.key, 1) <> ${quotedMark};
      END IF;
      RETURN NULL;
    END'`
}

export const postgresTermIndex: TermIndex = {
  create(table) {
    const terms = termTable(table)
    const [owner, key] = terms.perInstance
      ? [sql`${instanceColumn} TEXT COLLATE "C" NOT NULL, `, sql`${instanceColumn}, term, "key"`]
      : [sql``, sql`term, "key"`]
    return [
      sql`CREATE TABLE ${qualified(terms)} (${owner}term TEXT COLLATE "C" NOT NULL, "key" TEXT COLLATE "C" NOT NULL,
        weight INTEGER NOT NULL, PRIMARY KEY (${key}))`,
      createFunction(terms),
      sql`CREATE TRIGGER ${triggerOf(terms)} AFTER INSERT OR DELETE OR UPDATE OF ${termsColumn} ON ${qualified(table)}
        FOR EACH ROW EXECUTE FUNCTION ${qualified(terms)}()`,
    ]
  },
  drop(table) {
    const terms = termTable(table)
    return [
      sql`DROP TRIGGER IF EXISTS ${triggerOf(terms)} ON ${qualified(table)}`,
      sql`DROP FUNCTION IF EXISTS ${qualified(terms)}()`,
      sql`DROP TABLE IF EXISTS ${qualified(terms)}`,
    ]
  },
  entries: (column) => ({
    from: sql`json_each_text(${column}) AS "_entry"(term, weight)`,
    term: sql`"_entry".term COLLATE "C"`,
    weight: sql`"_entry".weight::int`,
  }),
}
