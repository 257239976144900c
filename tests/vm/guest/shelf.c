// SPDX-License-Identifier: GPL-2.0
/*
 * An enclosure without hardware, so that tests meet the kernel's own driver of enclosures: slots with
 * locate lights, each with the disk of a PCI device in it. For the virtual machine of the tests only.
 *
 *	modprobe shelf bays=0000:00:05.0,0000:00:06.0 lit=1,0
 *
 * While "hangs" is a slot's number, a question about its light does not end, as with an enclosure
 * whose processor died.
 */
#include <linux/delay.h>
#include <linux/enclosure.h>
#include <linux/module.h>
#include <linux/pci.h>

#define SLOTS 8

static char *bays[SLOTS];
static int count, lit[SLOTS], hangs;
module_param_array(bays, charp, &count, 0444);
module_param_array(lit, int, NULL, 0444);
module_param(hangs, int, 0644);

static struct device *root;
static struct enclosure_device *shelf;

static void ask(struct enclosure_component *slot)
{
	while (READ_ONCE(hangs) == slot->slot)
		msleep(50);
}

static void get_locate(struct enclosure_device *edev, struct enclosure_component *slot)
{
	ask(slot);
	slot->locate = lit[slot->number];
}

static int set_locate(struct enclosure_device *edev, struct enclosure_component *slot,
		      enum enclosure_component_setting setting)
{
	ask(slot);
	lit[slot->number] = setting == ENCLOSURE_SETTING_ENABLED;
	return 0;
}

static int show_id(struct enclosure_device *edev, char *buffer)
{
	return sprintf(buffer, "0x5000000000000001\n");
}

static struct enclosure_component_callbacks callbacks = {
	.get_locate = get_locate,
	.set_locate = set_locate,
	.show_id = show_id,
};

/* The disk's device, a child of its PCI device. */
static struct device *disk_in(const char *bay)
{
	unsigned int domain, bus, device, function;
	struct pci_dev *found;
	struct device *disk;

	if (sscanf(bay, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return NULL;
	found = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(device, function));
	if (!found)
		return NULL;
	disk = device_find_any_child(&found->dev);
	pci_dev_put(found);
	return disk;
}

static int add_slot(int index)
{
	struct enclosure_component *slot;
	struct device *disk;
	char name[16];

	snprintf(name, sizeof(name), "Slot %02d", index + 1);
	slot = enclosure_component_alloc(shelf, index, ENCLOSURE_COMPONENT_ARRAY_DEVICE, name);
	if (IS_ERR(slot))
		return PTR_ERR(slot);
	slot->slot = index + 1;
	if (enclosure_component_register(slot))
		return -ENOMEM;
	disk = disk_in(bays[index]);
	if (!disk)
		return -ENODEV;
	return enclosure_add_device(shelf, index, disk);
}

static int __init shelf_init(void)
{
	int index, error = 0;

	root = root_device_register("shelf");
	if (IS_ERR(root))
		return PTR_ERR(root);
	shelf = enclosure_register(root, "0:0:0:0", count, &callbacks);
	if (IS_ERR(shelf)) {
		root_device_unregister(root);
		return PTR_ERR(shelf);
	}
	for (index = 0; index < count && !error; index++)
		error = add_slot(index);
	if (error) {
		enclosure_unregister(shelf);
		root_device_unregister(root);
	}
	return error;
}

static void __exit shelf_exit(void)
{
	enclosure_unregister(shelf);
	root_device_unregister(root);
}

module_init(shelf_init);
module_exit(shelf_exit);
MODULE_DESCRIPTION("An enclosure without hardware");
MODULE_LICENSE("GPL");
