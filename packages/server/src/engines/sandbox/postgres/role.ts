/**
 * Schema and role of a SQL database. The role logs in itself, so its session cannot `RESET ROLE` to another user, and
 * it owns only what it creates. Its password is derived from the server's secret: every node can compute it and none
 * stores it.
 */
import { createHash, createHmac, hkdfSync, pbkdf2Sync } from 'node:crypto'
import pg from 'pg'
import type { DatabaseAddress } from '../../../base/network/database-url.ts'
import { statementTimeoutMs } from '../../../limits/postgres.ts'
import { sqlTempFileKiB } from '../../../limits/resources.ts'
import { createConnector } from '../../postgres/connect.ts'

export interface Role {
  readonly name: string
  readonly password: string
  readonly schema: string
}

const scramIterations = 4096
const keyBytes = 32
const saltBytes = 16

/**
 * The password verifier that PostgreSQL stores (RFC 5803). Sent instead of the password, which a server that logs
 * statements would record.
 */
function verifierOf(password: string, salt: Uint8Array): string {
  const salted = pbkdf2Sync(password, salt, scramIterations, keyBytes, 'sha256')
  const keyFor = (label: string): Buffer => createHmac('sha256', salted).update(label).digest()
  const stored = createHash('sha256').update(keyFor('Client Key')).digest('base64')
  const salt64 = Buffer.from(salt).toString('base64')
  return `SCRAM-SHA-256$${scramIterations}:${salt64}$${stored}:${keyFor('Server Key').toString('base64')}`
}

/**
 * Runs as the platform's user. Names and the verifier are transaction settings, so the text is constant. An advisory
 * lock serializes nodes that start together. Also fixes the session settings, since not every URL can carry them.
 */
const prepare = `DO $$
  DECLARE
    role text := current_setting('plinth.role');
    own text := current_setting('plinth.schema');
    base text := current_database();
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('plinth sql databases', 0));
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
      EXECUTE format('CREATE ROLE %I LOGIN NOINHERIT', role);
    END IF;
    EXECUTE format('ALTER ROLE %I LOGIN NOINHERIT NOCREATEDB NOCREATEROLE PASSWORD %L', role,
      current_setting('plinth.verifier'));
    EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', own);
    EXECUTE format('GRANT USAGE, CREATE ON SCHEMA %I TO %I', own, role);
    IF NOT has_database_privilege(role, base, 'CONNECT') THEN
      EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', base, role);
    END IF;
    IF to_regnamespace('public') IS NOT NULL AND has_schema_privilege(role, 'public', 'CREATE') THEN
      REVOKE CREATE ON SCHEMA public FROM PUBLIC;
      IF has_schema_privilege(role, 'public', 'CREATE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'PUBLIC may create in the schema "public", which is not ours';
      END IF;
    END IF;
    EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = %I', role, base, own);
    EXECUTE format('ALTER ROLE %I IN DATABASE %I SET timezone = ''UTC''', role, base);
    EXECUTE format('ALTER ROLE %I IN DATABASE %I SET datestyle = ''ISO''', role, base);
    EXECUTE format('ALTER ROLE %I IN DATABASE %I SET intervalstyle = ''iso_8601''', role, base);
    EXECUTE format('ALTER ROLE %I IN DATABASE %I SET bytea_output = ''hex''', role, base);
    EXECUTE format('ALTER ROLE %I IN DATABASE %I SET extra_float_digits = 1', role, base);
    EXECUTE format('ALTER ROLE %I IN DATABASE %I SET standard_conforming_strings = on', role, base);
    BEGIN
      EXECUTE format('ALTER ROLE %I IN DATABASE %I SET temp_file_limit = ''${sqlTempFileKiB}kB''', role, base);
    EXCEPTION WHEN insufficient_privilege THEN
      -- Only a superuser may set it.
    END;
  END
$$`

const missingPrivilege = '42501'

/**
 * Creates schema and role if they are missing. Throws an Error that names the privilege the platform's user lacks, and
 * the library's error when the server is unavailable.
 */
export async function prepareRole(options: { address: DatabaseAddress; secret: string; name: string }): Promise<Role> {
  const { address, secret, name } = options
  const schema = `_sql_${name}`
  const client = await createConnector(address, {
    application_name: 'plinth',
    statement_timeout: statementTimeoutMs,
  }).connect()
  try {
    const { rows } = await client.query('SELECT oid FROM pg_database WHERE datname = current_database()')
    // Roles are global to a server; the OID identifies the database.
    const role = `plinth_sql_${rows[0].oid}_${name}`
    const derive = (what: string, bytes: number): Buffer =>
      Buffer.from(hkdfSync('sha256', secret, '', `plinth sql ${what} ${role} v1`, bytes))
    const password = derive('password', keyBytes).toString('base64url')
    const verifier = verifierOf(password, derive('salt', saltBytes))
    await client.query('BEGIN')
    await client.query(
      `SELECT set_config('plinth.role', $1, true), set_config('plinth.schema', $2, true),
        set_config('plinth.verifier', $3, true)`,
      [role, schema, verifier],
    )
    await client.query(prepare)
    await client.query('COMMIT')
    return { name: role, password, schema }
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === missingPrivilege)
      throw new Error(
        `The SQL database "${name}" cannot be kept apart: ${error.message}. The user of DATABASE_URL needs CREATEROLE ` +
          'for a role that is the database’s own, and CREATE on the database for its schema.',
        { cause: error },
      )
    throw error
  } finally {
    await client.end()
  }
}
