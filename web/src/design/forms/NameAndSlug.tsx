// A name for people and a slug for commands; the slug follows the name until it is edited.

import { useState } from "react";
import { slugOf } from "../../slug.ts";
import { TextField } from "./Field.tsx";

export type Named = { name: string; slug: string };

type NameAndSlugProps = { value: Named; onChange: (value: Named) => void; example: string };

export function NameAndSlug({ value, onChange, example }: NameAndSlugProps) {
  const [edited, setEdited] = useState(false);
  return (
    <>
      <TextField
        label="Name"
        value={value.name}
        onChange={(event) => {
          const name = event.currentTarget.value;
          onChange({ name, slug: edited ? value.slug : slugOf(name) });
        }}
        placeholder={example}
        maxLength={80}
        autoComplete="off"
        required
      />
      <TextField
        label="Slug"
        value={value.slug}
        onChange={(event) => {
          setEdited(event.currentTarget.value !== "");
          onChange({ ...value, slug: event.currentTarget.value });
        }}
        pattern="[a-z][a-z0-9\-]{0,38}[a-z0-9]"
        title="2 to 40 lower-case letters, digits and hyphens, starting with a letter"
        hint="Used in commands and addresses. 2 to 40 lower-case letters, digits and hyphens; it cannot be changed later."
        autoComplete="off"
        spellCheck={false}
        required
      />
    </>
  );
}
