import { codeOf } from "@holdfast/contracts/client";

/** Undefined instead of the error that says that there is no such thing. */
export async function ifFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (codeOf(error) === "not_found") return undefined;
    throw error;
  }
}
