"""Acting from the console: menus, the plan screen, the replace wizard, the tunables."""
