"""Files that the real writers wrote, compressed: what a reader understands is theirs, not its author's."""

import base64
import zlib

# wandb 0.19.11, DataStore: steps 0-2 with rl/reward 0.5, 1.5, 2.5; a record of 40,000 bytes over a block's edge with
# a reward of NaN at step 3; 9.25 at step 4.
_WANDB = (
    "c-rmIu}U040LS5*y}huG5V)y=Xmf?-=^b3alz|XLxK=yaaBC$ht6(aNdkP`Gg^eH>lHM24$}YZwptylFmw?#k`(Ud1&##ydo68^Xu38J1HxKKr"
    "P=xd;cH>;VyHZ!jWj&dO_G*6==VNF4@TfYNhOipn#(Z!8sG5dOuPn=6?4~z+RdYK@p=|bp{wTFh&(H2RnqHPZ|J@tR_6D!%WkvY0^X2w;vHfpx"
    "I9nXPu9$V#*S<ZSWJR8SU1agPIe%XLyvTZA0RR910000000000000000000000000000000002^uRLC*_XkV4j{pDw00000cv&xY<6OPFQdh@i"
    "J(-5~xE!afXm4+QA1}5-(Mj)Onpxy){o$yY<j*$#m+}"
)

# tensorboard 2.21.0, EventFileWriter: steps 0-2 with three tensors: loss 0.25 * step in float_val, acc 0.1 * step as a
# double in tensor_content, count -step in int64_val.
_TENSORBOARD = (
    "c-r$|fPjCKJmzvv^tF%;I&jNTiZ`h!F*8rkwJbHS#L6g0k4vW{HLp0oC@DX&C`GThG&eV~s8X-ID6=HBNG}znDn2bUCp8`-lI`Yn+zD!K<>$Or"
    "oDk**do6P=0WOxD{NiFK4h}{w7LX{HFc))Ta<UT-2a^&9R1*Ui9~WzKeraBb6DtR25F^9ZgH?-tp>np#SC+v|6kybHKsU3&4#mt_GeKadJ(oDl"
    "Og^BQT>oK!ajkXPDeQ(bVH(b0kHzql=!XA;8}2yuWE22WJ7k*"
)

WANDB = zlib.decompress(base64.b85decode(_WANDB))
TENSORBOARD = zlib.decompress(base64.b85decode(_TENSORBOARD))
