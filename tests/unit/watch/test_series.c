#include <stdlib.h>

#include "kit/kit.h"

#include "watch/pattern.h"
#include "watch/series.h"

static const struct {
	const char *path, *series;
	int64_t step;		/* -1: none */
	enum role role;
} names[] = {
	{ "last.pt", "last.pt", -1, ROLE_RESUME },
	{ "last.ckpt", "last.ckpt", -1, ROLE_RESUME },
	{ "last-v2.ckpt", "last.ckpt", -1, ROLE_RESUME },
	{ "checkpoint-500", "checkpoint-*", 500, ROLE_RESUME },
	{ "epoch=3-step=400.ckpt", "epoch=*-step=*.ckpt", 400, ROLE_RESUME },
	{ "epoch=3-step=400-v1.ckpt", "epoch=*-step=*.ckpt", 400, ROLE_RESUME },
	{ "step=400-epoch=3.ckpt", "step=*-epoch=*.ckpt", 400, ROLE_RESUME },
	{ "run_2/global_step500", "run_2/global_step*", 500, ROLE_RESUME },
	{ "iter_0000100", "iter_*", 100, ROLE_RESUME },
	{ "step-5", "step-*", 5, ROLE_RESUME },
	{ "epoch_3.pth", "epoch_*.pth", 3, ROLE_RESUME },
	{ "weights/epoch5.pt", "weights/epoch*.pt", 5, ROLE_RESUME },
	{ "model_0004999.pth", "model_*.pth", 4999, ROLE_RESUME },
	{ "ckpt-12", "ckpt-*", 12, ROLE_RESUME },
	{ "model.ckpt-500", "model.ckpt-*", 500, ROLE_RESUME },
	{ "checkpoint_3_5000.pt", "checkpoint_*_*.pt", 5000, ROLE_RESUME },
	{ "ep3-ba100-rank0.pt", "ep*-ba*-rank0.pt", 100, ROLE_RESUME },
	{ "500", "*", 500, ROLE_RESUME },
	{ "2026-11-30_last.pt", "*-*-*_last.pt", -1, ROLE_RESUME },
	{ "recovery-3-100.pth.tar", "recovery-*-*.pth.tar", -1, ROLE_RESUME },
	{ "hpc_ckpt_3.ckpt", "hpc_ckpt_*.ckpt", -1, ROLE_RESUME },
	{ "resnet50_epoch_3.pth", "resnet50_epoch_*.pth", 3, ROLE_RESUME },
	{ "weights.05-0.32.h5", "weights.*-*.h5", 5, ROLE_RESUME },
	{ "model.safetensors", "model.safetensors", -1, ROLE_RESUME },
	{ "bestiary", "bestiary", -1, ROLE_BEST },
	{ "best.pt", "best.pt", -1, ROLE_BEST },
	{ "best_acc_epoch_7.pth", "best_acc_epoch_*.pth", 7, ROLE_BEST },
	{ "model_best.pth.tar", "model_best.pth.tar", -1, ROLE_BEST },
	{ "best-epoch=3-val_loss=0.25.ckpt",
	  "best-epoch=*-val_loss=*.ckpt", 3, ROLE_BEST },
	{ "model_final.pth", "model_final.pth", -1, ROLE_FINAL },
	{ "final", "final", -1, ROLE_FINAL },
	{ "checkpoint-9223372036854775807", "checkpoint-*",
	  INT64_MAX, ROLE_RESUME },
	{ "checkpoint-9223372036854775808", "checkpoint-*", -1, ROLE_RESUME },
	{ "checkpoint-99999999999999999999999999", "checkpoint-*", -1,
	  ROLE_RESUME },
	{ "step=0.5.ckpt", "step=*.ckpt", -1, ROLE_RESUME },
	{ "", "", -1, ROLE_RESUME }
};

static void
name_gives_series_step_and_role(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct series series;

		assert_int_equal(series_of(names[i].path, &series), 0);
		if (series.has_step != (names[i].step >= 0) ||
		    (series.has_step &&
		    series.step != (uint64_t)names[i].step))
			fail_msg("%s: step %lld", names[i].path,
			    series.has_step ? (long long)series.step : -1LL);
		if (series.role != names[i].role)
			fail_msg("%s: role %s", names[i].path,
			    role_text(series.role));
		assert_string_equal(series.name, names[i].series);
		free(series.name);
	}
}

static void
pattern_means_what_it_says(void **state)
{
	(void)state;
	assert_true(pattern_matches("checkpoint-#", "checkpoint-500"));
	assert_false(pattern_matches("checkpoint-#", "checkpoint-"));
	assert_false(pattern_matches("checkpoint-#", "checkpoint-5a"));
	assert_true(pattern_matches("a|*.pt|b", "x.pt"));
	assert_false(pattern_matches("*.pt", "x.pth"));
	assert_false(pattern_matches("*.pt", "a/x.pt"));
	assert_true(pattern_matches("*/x.pt", "a/x.pt"));
	assert_true(pattern_matches("*_#_*.pt", "a_b_12_c.pt"));
	assert_true(pattern_matches("tmp??", "tmpab"));
	assert_false(pattern_matches("tmp??", "tmpa"));
	assert_false(pattern_matches("*.pt", ""));
	assert_true(pattern_matches("*", ""));
	assert_true(pattern_matches("*-#-of-#.*", "model-00001-of-00002.bin"));
	assert_false(pattern_matches("#", "#"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_gives_series_step_and_role),
		cmocka_unit_test(pattern_means_what_it_says)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
