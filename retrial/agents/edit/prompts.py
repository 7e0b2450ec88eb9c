"""What the built-in agent tells a model after its first reply: failed tests, lint errors, an unchanged tree."""

FAILED = """\
{output}

####

See the testing errors above.
The tests are correct.
Fix the code in {files} to resolve the errors."""
LINT = """\
{errors}

Fix these errors in {files}."""
UNCHANGED = "Your reply does not change any file. Write the solution into {files}."
