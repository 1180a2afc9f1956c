import pytest
import torch

from intervalnn.tasks import hounsfield


def test_the_network_scale_has_air_at_0_and_water_at_one_half() -> None:
    hu = torch.tensor([-2048.0, -1000.0, 0.0, 1000.0, 3071.0])

    assert hounsfield.to_unit(hu).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert hounsfield.to_unit(hu, clip=False).tolist() == pytest.approx([-0.524, 0.0, 0.5, 1.0, 2.0355])


def test_stored_integers_become_floats() -> None:
    assert hounsfield.to_unit(torch.tensor([-1000, 0], dtype=torch.int16)).tolist() == [0.0, 0.5]


def test_attenuation_is_that_of_water_and_proportional_to_the_network_scale() -> None:
    hu = torch.tensor([-1024.0, -1000.0, -500.0, 0.0, 1000.0], dtype=torch.float64)

    attenuation = hounsfield.to_attenuation(hu)

    assert attenuation.tolist() == pytest.approx([0.0, 0.0, 0.1, 0.2, 0.4])
    assert torch.allclose(attenuation, hounsfield.UNIT * hounsfield.to_unit(hu))


def test_lodopab_has_its_published_constants() -> None:
    assert pytest.approx(0.8135858) == hounsfield.LODOPAB
    assert hounsfield.to_lodopab(torch.tensor([-1024.0, 0.0, 3071.0, 4000.0])).tolist() == pytest.approx(
        [0.0, 20 / 81.35858, 1.0, 1.0]
    )
    assert float(hounsfield.to_lodopab(torch.tensor(-1000.0)) * 81.35858) == pytest.approx(0.02, rel=1e-3)


def test_every_scale_leads_back_to_hounsfield_units() -> None:
    hu = torch.linspace(-1000, 1000, 41, dtype=torch.float64)

    for to, back in (
        (hounsfield.to_unit, hounsfield.from_unit),
        (hounsfield.to_attenuation, hounsfield.from_attenuation),
        (hounsfield.to_lodopab, hounsfield.from_lodopab),
    ):
        assert torch.allclose(back(to(hu)), hu, atol=1e-9)
