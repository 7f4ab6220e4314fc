// What can be done already while nodes and allocations cannot, as far as the role allows.

import { Link } from "@tanstack/react-router";
import { buttonClasses } from "../../design/Button.tsx";
import { useActing } from "../../session.ts";

export function MeanwhileLinks() {
  const { may } = useActing();
  return (
    <>
      {may("tokens:write") && (
        <Link to="/organization/tokens" className={buttonClasses("primary")}>
          Create an API token
        </Link>
      )}
      {may("members:write") && (
        <Link to="/organization/members" className={buttonClasses()}>
          Invite people
        </Link>
      )}
      {may("projects:write") && (
        <Link to="/organization/projects" className={buttonClasses()}>
          Set up projects
        </Link>
      )}
    </>
  );
}
