from __future__ import annotations

import base64
import json
import sys

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.mlops.hpc_validation.plugins.module_utils._probe import share
from ansible_collections.mlops.hpc_validation.plugins.modules import beegfs_check


def test_the_documentation_is_of_the_options_there_are():
    documented = yaml.safe_load(beegfs_check.DOCUMENTATION)["options"]
    spec = share.argument_spec()
    assert set(documented) == {*spec, "_mounts"}
    for name, option in spec.items():
        for key in ("type", "default", "choices", "elements", "required"):
            assert documented[name].get(key) == option.get(key), (name, key)


@pytest.mark.parametrize("check_mode", [False, True])
def test_it_looks_at_the_mount_with_the_source_that_it_is_given(capsys, root, tmp_path, check_mode):
    source = (root / "files/kit/share/mounts.py").read_bytes()
    arguments = {
        "path": str(tmp_path),  # no mount of BeeGFS
        "python": sys.executable,
        "access": "none",
        "_mounts": base64.b64encode(source).decode(),
        "_ansible_check_mode": check_mode,
    }
    with patch_module_args(arguments), pytest.raises(SystemExit):
        beegfs_check.main()
    answer = json.loads(capsys.readouterr().out)
    assert answer["changed"] is False
    assert answer["facts"]["mount"]["touched"] is False
    assert answer["facts"]["checks"] == (["mount"] if check_mode else ["mount", "use", "speed"])
    assert (answer["facts"]["use"] is None) is check_mode
    assert list(tmp_path.iterdir()) == []
