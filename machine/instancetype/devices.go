package instancetype

import (
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
)

// preferAttached fills which devices the machine gets by itself. It comes before they are added.
func preferAttached(d *v1.Devices, p *v1beta1.DevicePreferences) {
	if p == nil {
		return
	}
	open(&d.AutoattachGraphicsDevice, p.PreferredAutoattachGraphicsDevice)
	open(&d.AutoattachMemBalloon, p.PreferredAutoattachMemBalloon)
	open(&d.AutoattachPodInterface, p.PreferredAutoattachPodInterface)
	open(&d.AutoattachSerialConsole, p.PreferredAutoattachSerialConsole)
	open(&d.AutoattachInputDevice, p.PreferredAutoattachInputDevice)
}

func preferDevices(s *v1.VirtualMachineInstanceSpec, p *v1beta1.DevicePreferences) {
	if p == nil {
		return
	}
	d := &s.Domain.Devices
	set(&d.DisableHotplug, p.PreferredDisableHotplug)
	open(&d.UseVirtioTransitional, p.PreferredUseVirtioTransitional)
	open(&d.Rng, p.PreferredRng)
	open(&d.BlockMultiQueue, p.PreferredBlockMultiQueue)
	open(&d.NetworkInterfaceMultiQueue, p.PreferredNetworkInterfaceMultiQueue)
	open(&d.TPM, p.PreferredTPM)
	if d.Sound != nil {
		word(&d.Sound.Model, &p.PreferredSoundModel)
	}
	for i := range d.GPUs {
		open(&d.GPUs[i].VirtualGPUOptions, p.PreferredVirtualGPUOptions)
	}
	for i := range d.PanicDevices {
		open(&d.PanicDevices[i].Model, p.PreferredPanicDeviceModel)
	}
	for i := range d.Inputs {
		word(&d.Inputs[i].Bus, &p.PreferredInputBus)
		word(&d.Inputs[i].Type, &p.PreferredInputType)
	}
	for i := range d.Disks {
		preferDisk(&d.Disks[i], p)
	}
	preferInterfaces(s, p)
}

// preferDisk fills a disk; one that doesn't say what it is is a plain disk.
func preferDisk(d *v1.Disk, p *v1beta1.DevicePreferences) {
	if d.Disk == nil && d.LUN == nil && d.CDRom == nil {
		d.Disk = &v1.DiskTarget{}
	}
	switch {
	case d.LUN != nil:
		word(&d.LUN.Bus, &p.PreferredLunBus)
	case d.CDRom != nil:
		word(&d.CDRom.Bus, &p.PreferredCdromBus)
	default:
		word(&d.Disk.Bus, &p.PreferredDiskBus)
		word(&d.Cache, &p.PreferredDiskCache)
		word(&d.IO, &p.PreferredDiskIO)
		open(&d.BlockSize, p.PreferredDiskBlockSize)
		if d.Disk.Bus == v1.DiskBusVirtio {
			open(&d.DedicatedIOThread, p.PreferredDiskDedicatedIoThread)
		}
	}
}

func preferInterfaces(s *v1.VirtualMachineInstanceSpec, p *v1beta1.DevicePreferences) {
	pod := map[string]bool{}
	for _, n := range s.Networks {
		pod[n.Name] = n.Pod != nil
	}
	for i := range s.Domain.Devices.Interfaces {
		iface := &s.Domain.Devices.Interfaces[i]
		word(&iface.Model, &p.PreferredInterfaceModel)
		if pod[iface.Name] && iface.Binding == nil && iface.InterfaceBindingMethod == (v1.InterfaceBindingMethod{}) {
			open(&iface.Masquerade, p.PreferredInterfaceMasquerade)
		}
	}
}
