package domain

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"libvirt.org/go/libvirtxml"
)

func (c *converter) sounds() []libvirtxml.DomainSound {
	s := c.spec().Devices.Sound
	if s == nil {
		return nil
	}
	path, models := c.path.Child("devices", "sound"), []string{"ich9", "ac97"}
	model := s.Model
	if model == "" {
		model = models[0]
	}
	if !slices.Contains(models, model) {
		c.refuse(field.NotSupported(path.Child("model"), model, models))
	}
	return []libvirtxml.DomainSound{{Model: model, Alias: c.alias(s.Name, path.Child("name"))}}
}
