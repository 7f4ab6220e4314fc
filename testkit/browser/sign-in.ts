// A person signs in at the page, and is where they wanted to go.

import type { Page } from "playwright-core";
import { PASSWORD } from "../api/api.ts";

export async function signIn(page: Page, address: string, email: string, password = PASSWORD): Promise<void> {
  await page.goto(address);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
  // Narrow windows have a button in place of the menu.
  const menu = page.getByRole("navigation", { name: "Main" });
  await menu
    .or(page.getByRole("button", { name: "Open navigation" }))
    .first()
    .waitFor();
}
