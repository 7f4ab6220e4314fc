// Creates an organization, for operators, and switches to it.

import { createOrganization } from "@holdfast/contracts/endpoints/organizations";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api.ts";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { toast } from "../../design/feedback/Toast.tsx";
import { NameAndSlug, type Named } from "../../design/forms/NameAndSlug.tsx";
import { chooseOrganization, meQuery } from "../../session.ts";

const blank: Named = { name: "", slug: "" };

export function NewOrganizationDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [named, setNamed] = useState(blank);
  const queryClient = useQueryClient();
  const create = useMutation({
    mutationFn: (idempotencyKey: string) => call(createOrganization, { body: named, idempotencyKey }),
    onSuccess: async (organization) => {
      await queryClient.invalidateQueries({ queryKey: meQuery.queryKey });
      chooseOrganization(organization.id);
      toast(`Created ${organization.name}`);
      setNamed(blank);
      onClose();
    },
  });
  return (
    <FormDialog
      open={open}
      onClose={onClose}
      title="New organization"
      description="Creates a separate tenant with one project, default. You act in it as operator."
      action="Create organization"
      mutation={create}
    >
      <NameAndSlug value={named} onChange={setNamed} example="Tidewater Labs" />
    </FormDialog>
  );
}
