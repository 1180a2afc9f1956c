"""``python -m intervalnn.cli`` is ``inn``, for launchers such as torchrun that want a module."""

from intervalnn.cli import main

main(prog_name="inn")
