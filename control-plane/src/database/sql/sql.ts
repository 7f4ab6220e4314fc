// The database as the rest of the code sees it: tagged templates that are sent when they are awaited, and transactions.
//
//   const [row] = await sql<Row[]>`SELECT id FROM nodes WHERE name = ${name}`;
//
// A template inside another becomes part of it; `sql("name")` is a quoted identifier; `sql.json(…)` a JSON parameter.
// Every template is a prepared statement on each connection that has run it, named after its text.

import type { QueryResult } from "pg";
import type { ConnectionOptions, Message } from "./connection.ts";
import { isStalePlan } from "./errors.ts";
import { listen, type Subscription } from "./listen.ts";
import { createPool } from "./pool.ts";
import { compile, Fragment, Identifier, type Statement, type TemplateValue } from "./template.ts";
import { type Send, transact } from "./transaction.ts";
import { Json, type Parameter, toParameter } from "./values.ts";

// biome-ignore lint/suspicious/noExplicitAny: what a statement returns is known to its caller alone.
export type Row = Record<string, any>;
/** The rows, and how many were returned or changed. */
export type Rows<T extends readonly object[] = Row[]> = T & { count: number };

export interface Queryable {
  <T extends readonly object[] = Row[]>(
    strings: TemplateStringsArray,
    ...values: readonly TemplateValue[]
  ): Query<Rows<T>>;
  (identifier: string): Identifier;
  json(value: unknown): Json;
  /** A constant text, which may contain several statements if it has no parameters. It is not prepared. */
  unsafe(text: string, values?: readonly Parameter[]): Promise<Rows>;
}

declare const inTransaction: unique symbol;

/** Everything sent through it happens together, or not at all. */
export interface Tx extends Queryable {
  readonly [inTransaction]: true;
}

export interface Sql extends Queryable {
  /** Commits when `work` returns. Rolls back when it throws, or when one of its statements failed. */
  begin<T>(work: (tx: Tx) => T | Promise<T>, options?: { settings: Record<string, string> }): Promise<T>;
  /** `onListening` is called each time that listening begins: what was published before may have been missed. */
  listen(
    channel: string,
    onNotification: (payload: string) => void,
    onListening: () => void,
  ): Promise<Subscription>;
  /** Waits for what is under way, for as long as `timeout` seconds. */
  end(options?: { timeout: number }): Promise<void>;
}

export type SqlOptions = ConnectionOptions & { max: number };

const END_TIMEOUT_SECONDS = 60;

export function openSql(options: SqlOptions): Sql {
  const pool = createPool(options);
  let generation = 0;
  const name = ({ digest }: Statement) => (generation === 0 ? digest : `${digest}_${generation}`);
  /** From now on all statements are prepared anew, under other names. */
  const noticeStalePlan = (error: unknown) => {
    const stale = isStalePlan(error);
    if (stale) generation += 1;
    return stale;
  };

  const once: Send = async (message) => {
    const connection = await pool.borrow();
    try {
      return await connection.send(message);
    } finally {
      pool.release(connection);
    }
  };
  const alone = async (statement: Statement) => {
    try {
      return await once({ ...statement, name: name(statement) });
    } catch (error) {
      if (!noticeStalePlan(error)) throw error;
      return await once({ ...statement, name: name(statement) });
    }
  };

  return Object.assign(queryable(alone, once), {
    begin: async <T>(work: (tx: Tx) => T | Promise<T>, { settings } = { settings: {} }) => {
      const connection = await pool.borrow();
      try {
        return await transact(connection, settings, (send) => {
          const named = (statement: Statement) => send({ ...statement, name: name(statement) });
          return work(queryable(named, send) as Tx);
        });
      } catch (error) {
        noticeStalePlan(error);
        throw error;
      } finally {
        pool.release(connection);
      }
    },
    listen: (channel: string, onNotification: (payload: string) => void, onListening: () => void) =>
      listen(options, { channel, onNotification, onListening }),
    end: ({ timeout } = { timeout: END_TIMEOUT_SECONDS }) => pool.end(timeout * 1000),
  }) as Sql;
}

function queryable(run: (statement: Statement) => Promise<QueryResult>, send: Send): Queryable {
  const tag = (first: TemplateStringsArray | string, ...values: readonly TemplateValue[]) =>
    typeof first === "string" ? new Identifier(first) : new Query(first, values, run);
  return Object.assign(tag, {
    json: (value: unknown) => new Json(value),
    unsafe: async (text: string, values: readonly Parameter[] = []) => {
      const message: Message = { text, values: values.map((value, index) => toParameter(value, index + 1)) };
      return rowsOf(await send(message));
    },
  }) as Queryable;
}

// biome-ignore lint/suspicious/noExplicitAny: as in every promise.
type Rejected<T> = ((error: any) => T | PromiseLike<T>) | null;

/** Sent once, when it is first awaited; never when it becomes part of another. */
export class Query<T> extends Fragment implements Promise<T> {
  readonly [Symbol.toStringTag] = "Query";
  readonly #run: (statement: Statement) => Promise<QueryResult>;
  #result: Promise<T> | undefined;

  constructor(
    strings: TemplateStringsArray,
    values: readonly TemplateValue[],
    run: (statement: Statement) => Promise<QueryResult>,
  ) {
    super(strings, values);
    this.#run = run;
  }

  async #send(): Promise<T> {
    return rowsOf(await this.#run(compile(this))) as T;
  }

  #sent(): Promise<T> {
    this.#result ??= this.#send();
    return this.#result;
  }

  // biome-ignore lint/suspicious/noThenProperty: a query is a promise that begins when somebody waits for it.
  then<A = T, B = never>(
    resolved?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: Rejected<B>,
  ): Promise<A | B> {
    return this.#sent().then(resolved, rejected);
  }

  catch<B = never>(rejected?: Rejected<B>): Promise<T | B> {
    return this.#sent().catch(rejected);
  }

  finally(settled?: (() => void) | null): Promise<T> {
    return this.#sent().finally(settled);
  }
}

/** Of several statements, the rows of the last. */
function rowsOf(result: QueryResult | QueryResult[]): Rows {
  const last = Array.isArray(result) ? result.at(-1) : result;
  return Object.defineProperty(last?.rows ?? [], "count", { value: last?.rowCount ?? 0 }) as Rows;
}
