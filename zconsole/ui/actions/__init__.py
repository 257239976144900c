"""Changing pools from the console: action menus, plan confirmation, disk replacement, tunables."""
